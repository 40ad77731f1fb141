// LFM2: most layers are a short gated convolution in place of attention, whose heads are normalised.
// Liquid AI, "LFM2 Technical Report", arXiv 2511.23404.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_lfm2;
const Arch arch_lfm2 = {
    .name = "lfm2",
    .rope = Rope::Halves,
    .tensors = {.output_norm = "token_embd_norm.weight",
                .query_bias = {},
                .key_bias = {},
                .value_bias = {},
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .attention_output_bias = {},
                .state_in = "blk.%u.shortconv.in_proj.weight",
                .conv = "blk.%u.shortconv.conv.weight",
                .state_out = "blk.%u.shortconv.out_proj.weight"},
    .recurrence = Recurrence::ShortConv,
    .partial_layers = true,
};
}  // namespace greta
