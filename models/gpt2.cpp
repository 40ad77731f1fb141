// GPT-2: positions have embeddings, and nothing rotates. Norms subtract the mean, biases everywhere, and no
// gate. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gpt2;
const Arch arch_gpt2 = {
    .name = "gpt2",
    .ungated = Factor::Gelu,
    .tensors = {.output_norm_bias = "output_norm.bias",
                .position_embedding = "position_embd.weight",
                .attention_norm_bias = "blk.%u.attn_norm.bias",
                .ffn_norm_bias = "blk.%u.ffn_norm.bias",
                .gate = {}},
    .layer_norm = true,
};
}  // namespace greta
