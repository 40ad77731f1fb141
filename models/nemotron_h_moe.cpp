// Nemotron 3 Nano: a layer is Mamba 2, attention that does not rotate, or experts without a gate, scored by a
// sigmoid with a bias of the choice, beside a shared one. NVIDIA, "Nemotron 3 Nano", 2025; transformers'
// modeling_nemotron_h.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_nemotron_h_moe;
const Arch arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .tensors = {.query_bias = {},
                .key_bias = {},
                .value_bias = {},
                .attention_output_bias = {},
                .state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = "blk.%u.ssm_conv1d.bias",
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_norm = "blk.%u.ssm_norm.weight",
                .state_out = "blk.%u.ssm_out.weight",
                .ffn_norm = "blk.%u.attn_norm.weight",
                .head_ffn_norm = "blk.%u.post_attention_norm.weight",
                .router_bias = {},
                .choice_bias = "blk.%u.exp_probs_b.bias",
                .expert_gate = {},
                .expert_gate_bias = {},
                .expert_up_bias = {},
                .expert_down_bias = {},
                .shared_gate = {}},
    .recurrence = Recurrence::Groups,
    .lone_blocks = true,
    .rope_skip_period = 1,
    .partial_layers = true,
    .needs_experts = true,
    .normalise_experts = true,
    .drafts = true,
    .centred_head = true,
};
}  // namespace greta
