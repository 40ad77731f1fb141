// Qwen 3: llama with a norm of each query and key head, and rotary halves.
// Yang et al., "Qwen3 Technical Report", arXiv 2505.09388.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen3;
const Arch arch_qwen3 = {
    .name = "qwen3",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
};
}  // namespace greta
