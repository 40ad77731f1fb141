// Nemotron: norms that subtract the mean, a part of each head rotates, no gate, and the square of what is
// positive. Parmar et al., "Nemotron-4 15B Technical Report", arXiv 2402.16819.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_nemotron;
const Arch arch_nemotron = {
    .name = "nemotron",
    .rope = Rope::Halves,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias",
                .gate = {}},
    .layer_norm = true,
};
}  // namespace greta
