// StableLM and StableLM 2: norms that subtract the mean, a part of each head rotates, and attention and
// feed-forward may read the same residual. Bellagente et al., "Stable LM 2 1.6B Technical Report", arXiv
// 2402.17834.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_stablelm;
const Arch arch_stablelm = {
    .name = "stablelm",
    .rope = Rope::Halves,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias"},
    .layer_norm = true,
    .parallel = true,
    .one_norm = true,
};
}  // namespace greta
