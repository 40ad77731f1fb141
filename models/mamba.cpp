// Mamba: no layer attends; each is a selective scan of every channel.
// Gu, Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", arXiv 2312.00752.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_mamba;
const Arch arch_mamba = {
    .name = "mamba",
    .tensors = {.state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = maybe("blk.%u.ssm_conv1d.bias"),
                .rate = "blk.%u.ssm_dt.weight",
                .rate_key_query = "blk.%u.ssm_x.weight",
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_out = "blk.%u.ssm_out.weight",
                .gate = {},
                .up = {},
                .down = {}},
    .recurrence = Recurrence::Selective,
    .partial_layers = true,
};
}  // namespace greta
