// The text part of Qwen 3 VL: Qwen 3, whose positions have three dimensions, which are one in a text.
// Qwen Team, "Qwen3-VL Technical Report", arXiv 2511.21631.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen3vl;
const Arch arch_qwen3vl = {
    .name = "qwen3vl",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .rope_sections = true,
};
}  // namespace greta
