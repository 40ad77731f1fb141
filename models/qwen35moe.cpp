// Qwen 3.5 with experts, and a shared one that has a weight of its own. Yang, Kautz, Hatamizadeh, "Gated
// Delta Networks", arXiv 2412.06464.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen35moe;
const Arch arch_qwen35moe = {
    .name = "qwen35moe",
    .rope = Rope::Halves,
    .tensors = {.query_key_value = {},
                .query_key_value_bias = {},
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .state_in = "blk.%u.attn_qkv.weight",
                .state_gate = "blk.%u.attn_gate.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .strength = "blk.%u.ssm_beta.weight",
                .rate = "blk.%u.ssm_alpha.weight",
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .state_norm = "blk.%u.ssm_norm.weight",
                .state_out = "blk.%u.ssm_out.weight",
                .ffn_norm = "blk.%u.post_attention_norm.weight",
                .shared_router = "blk.%u.ffn_gate_inp_shexp.weight"},
    .recurrence = Recurrence::Delta,
    .attention_period = 4,
    .tiled_heads = true,
    .gated_attention = true,
    .rope_sections = true,
    .needs_experts = true,
    .normalise_experts = true,
    .drafts = true,
};
}  // namespace greta
