// Falcon-H1: each layer has attention and Mamba 2 beside each other.
// Zuo et al., "Falcon-H1: A Family of Hybrid-Head Language Models", arXiv 2507.22448.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_falcon_h1;
const Arch arch_falcon_h1 = {
    .name = "falcon-h1",
    .rope = Rope::Halves,
    .tensors = {.state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = maybe("blk.%u.ssm_conv1d.bias"),
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_norm = maybe("blk.%u.ssm_norm.weight"),
                .state_out = "blk.%u.ssm_out.weight",
                .ffn_norm = "blk.%u.ffn_norm"},
    .recurrence = Recurrence::Groups,
    .beside = true,
};
}  // namespace greta
