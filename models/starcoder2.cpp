// StarCoder 2: norms that subtract the mean, biases everywhere, and no gate. Lozhkov et al., "StarCoder 2 and
// The Stack v2: The Next Generation", arXiv 2402.19173.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_starcoder2;
const Arch arch_starcoder2 = {
    .name = "starcoder2",
    .rope = Rope::Halves,
    .ungated = Factor::Gelu,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias",
                .gate = {}},
    .layer_norm = true,
};
}  // namespace greta
