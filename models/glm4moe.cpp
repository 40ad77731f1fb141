// GLM-4.5 to 4.7: experts scored by a sigmoid with a bias of the choice, beside shared ones, half of a head
// rotated, norms of query and key heads in the larger model. Solar Open is the same, and rotates whole heads.
// GLM-4.5 Team, "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models", arXiv 2508.06471.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_glm4moe;
const Arch arch_glm4moe = {
    .name = "glm4moe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = maybe("blk.%u.attn_q_norm.weight"),
                .key_norm = maybe("blk.%u.attn_k_norm.weight"),
                .ffn_norm = "blk.%u.post_attention_norm.weight"},
    .needs_experts = true,
    .normalise_experts = true,
    .drafts = true,
};
}  // namespace greta
