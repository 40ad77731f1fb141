// Nemotron-H: a layer is Mamba 2, attention that does not rotate, or a feed-forward block without a gate.
// NVIDIA, "Nemotron-H: A Family of Accurate and Efficient Hybrid Models", arXiv 2504.03624.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_nemotron_h;
const Arch arch_nemotron_h = {
    .name = "nemotron_h",
    .tensors = {.query_bias = {},
                .key_bias = {},
                .value_bias = {},
                .attention_output_bias = {},
                .state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = maybe("blk.%u.ssm_conv1d.bias"),
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_norm = "blk.%u.ssm_norm.weight",
                .state_out = "blk.%u.ssm_out.weight",
                .ffn_norm = "blk.%u.attn_norm.weight",
                .gate = {},
                .gate_bias = {},
                .up_bias = {},
                .down_bias = {}},
    .recurrence = Recurrence::Groups,
    .lone_blocks = true,
    .rope_skip_period = 1,
    .partial_layers = true,
};
}  // namespace greta
