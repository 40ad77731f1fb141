// Granite 4: most layers are Mamba 2, the others attend and mostly do not rotate; experts or none. Bamba,
// too. IBM, "Granite 4.0", 2025; transformers' modeling_granitemoehybrid.py and modeling_bamba.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_granitehybrid;
const Arch arch_granitehybrid = {
    .name = "granitehybrid",
    .rope = Rope::Pairs,
    .tensors = {.state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = "blk.%u.ssm_conv1d.bias",
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_norm = "blk.%u.ssm_norm.weight",
                .state_out = "blk.%u.ssm_out.weight"},
    .scales = true,
    .recurrence = Recurrence::Groups,
    .rope_by_finetuned = true,
    .partial_layers = true,
    .normalise_experts = true,
};
}  // namespace greta
