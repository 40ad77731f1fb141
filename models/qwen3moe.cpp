// Qwen 3 with experts in every layer, chosen by a softmax whose weights are normalised.
// Yang et al., "Qwen3 Technical Report", arXiv 2505.09388.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen3moe;
const Arch arch_qwen3moe = {
    .name = "qwen3moe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
