// OLMoE: experts in every layer, whose weights are not normalised, and norms of all query and all key heads
// together. Muennighoff et al., "OLMoE: Open Mixture-of-Experts Language Models", arXiv 2409.02060.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_olmoe;
const Arch arch_olmoe = {
    .name = "olmoe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .norm_all_heads = true,
    .needs_experts = true,
};
}  // namespace greta
