// Qwen 2 and 2.5: llama with biases on query, key and value, and rotary halves.
// Yang et al., "Qwen2 Technical Report", arXiv 2407.10671.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen2;
const Arch arch_qwen2 = {
    .name = "qwen2",
    .rope = Rope::Halves,
    .tensors = {.query_bias = "blk.%u.attn_q.bias",
                .key_bias = "blk.%u.attn_k.bias",
                .value_bias = "blk.%u.attn_v.bias"},
};
}  // namespace greta
