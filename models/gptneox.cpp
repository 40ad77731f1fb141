// GPT-NeoX and Pythia: attention and feed-forward read the same residual behind norms of their own, which
// subtract the mean; a part of each head rotates, biases everywhere, and no gate. Black et al.,
// "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", arXiv 2204.06745.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gptneox;
const Arch arch_gptneox = {
    .name = "gptneox",
    .rope = Rope::Halves,
    .ungated = Factor::GeluErf,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias",
                .gate = {}},
    .layer_norm = true,
    .parallel = true,
};
}  // namespace greta
