// The text part of Qwen 3 VL with experts: Qwen 3 with experts, whose positions have three dimensions, which
// are one in a text. Qwen Team, "Qwen3-VL Technical Report", arXiv 2511.21631.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen3vlmoe;
const Arch arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .rope_sections = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
