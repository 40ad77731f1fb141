// dots.llm1: norms of query and key heads, experts scored by a sigmoid with a bias of the choice, beside
// shared ones. Huo et al., "dots.llm1 Technical Report", arXiv 2506.05767.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_dots1;
const Arch arch_dots1 = {
    .name = "dots1",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .needs_experts = true,
};
}  // namespace greta
