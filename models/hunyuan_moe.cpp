// Hunyuan A13B: norms of each query and key head behind the rotation, experts chosen by a softmax whose
// weights are normalised, and a shared one. Tencent, "Hunyuan-A13B Technical Report", 2025.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_hunyuan_moe;
const Arch arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .norm_turned = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
