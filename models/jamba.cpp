// Jamba: most layers are Mamba 1 with norms, the others attend and do not rotate; some layers have experts.
// Lieber et al., "Jamba: A Hybrid Transformer-Mamba Language Model", arXiv 2403.19887.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_jamba;
const Arch arch_jamba = {
    .name = "jamba",
    .tensors = {.query_bias = {},
                .key_bias = {},
                .value_bias = {},
                .attention_output_bias = {},
                .state_all = "blk.%u.ssm_in.weight",
                .conv = "blk.%u.ssm_conv1d.weight",
                .conv_bias = maybe("blk.%u.ssm_conv1d.bias"),
                .rate = "blk.%u.ssm_dt.weight",
                .rate_key_query = "blk.%u.ssm_x.weight",
                .rate_norm = "blk.%u.ssm_dt_norm.weight",
                .state_key_norm = "blk.%u.ssm_b_norm.weight",
                .state_query_norm = "blk.%u.ssm_c_norm.weight",
                .rate_bias = "blk.%u.ssm_dt.bias",
                .decay = "blk.%u.ssm_a",
                .skip = "blk.%u.ssm_d",
                .state_out = "blk.%u.ssm_out.weight"},
    .recurrence = Recurrence::Selective,
    .rope_skip_period = 1,
    .partial_layers = true,
    .experts_by_router = true,
};
}  // namespace greta
