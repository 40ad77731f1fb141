// Mamba 2: no layer attends; each is a scan whose heads share keys and queries in groups.
// Dao, Gu, "Transformers are SSMs", arXiv 2405.21060.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_mamba2;
const Arch arch_mamba2 = {
    .name = "mamba2",
    .tensors = {.state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = maybe("blk.%u.ssm_conv1d.bias"),
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_norm = "blk.%u.ssm_norm.weight",
                .state_out = "blk.%u.ssm_out.weight",
                .gate = {},
                .up = {},
                .down = {}},
    .recurrence = Recurrence::Groups,
    .partial_layers = true,
};
}  // namespace greta
