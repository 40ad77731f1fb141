// MiniMax M2: norms of all query and all key heads together, a part of a head rotated, experts scored by a
// sigmoid with a bias of the choice. MiniMax, "MiniMax-M2", 2025; transformers' modeling_minimax_m2.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_minimax_m2;
const Arch arch_minimax_m2 = {
    .name = "minimax-m2",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .norm_all_heads = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
