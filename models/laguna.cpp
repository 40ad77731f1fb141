// Poolside's Laguna: the counts of heads differ between layers, a gate of each head or of each of its values
// is a softplus, and of each four layers the first sees all positions, and the others have a window and
// rotate by another base. Reference: Laguna of Hugging Face Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_laguna;
const Arch arch_laguna = {
    .name = "laguna",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .attention_gate = "blk.%u.attn_gate.weight"},
    .gate_factor = Factor::Softplus,
    .window_period = 4,
    .window_behind = true,
    .window_sizes = true,
    .window_rope = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
