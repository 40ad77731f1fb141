// Command R and Aya: attention and feed-forward read the same residual behind one norm, which subtracts the
// mean, and logits have a scale. Command R+ normalises each head of queries and keys by gains of its own.
// Reference: Cohere of Hugging Face Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_command_r;
const Arch arch_command_r = {
    .name = "command-r",
    .tensors = {.query_norm = maybe("blk.%u.attn_q_norm.weight"),
                .key_norm = maybe("blk.%u.attn_k_norm.weight")},
    .layer_norm = true,
    .parallel = true,
    .one_norm = true,
    .logit_factor = true,
};
}  // namespace greta
