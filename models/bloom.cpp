// BLOOM: LayerNorm everywhere, also of the embeddings, biases, no gate, and in place of rotations scores that
// fall with the distance, for each head by a slope of its own. BigScience, "BLOOM: A 176B-Parameter
// Open-Access Multilingual Language Model", arXiv 2211.05100; Press et al., "Train Short, Test Long", arXiv
// 2108.12409.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_bloom;
const Arch arch_bloom = {
    .name = "bloom",
    .ungated = Factor::Gelu,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .embedding_norm = "token_embd_norm.weight",
                .embedding_norm_bias = "token_embd_norm.bias",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias",
                .gate = {}},
    .layer_norm = true,
    .slopes = true,
};
}  // namespace greta
