// Phi 1, 1.5 and 2: attention and feed-forward read the same residual behind one norm, which subtracts the
// mean, a part of each head rotates, biases everywhere, and no gate. Li et al., "Textbooks Are All You Need
// II: phi-1.5 technical report", arXiv 2309.05463.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_phi2;
const Arch arch_phi2 = {
    .name = "phi2",
    .rope = Rope::Halves,
    .ungated = Factor::Gelu,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .output_bias = "output.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .gate = {}},
    .layer_norm = true,
    .parallel = true,
    .one_norm = true,
};
}  // namespace greta
