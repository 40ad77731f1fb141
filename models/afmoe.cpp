// Arcee's Trinity: norms before and behind the blocks, a gate for each value that attention gives, layers
// without a window do not rotate, and experts that a bias chooses among. Reference: Afmoe of Hugging Face
// Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_afmoe;
const Arch arch_afmoe = {
    .name = "afmoe",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .attention_gate = "blk.%u.attn_gate.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .scale_embedding = true,
    .window_required = true,
    .window_period = 4,
    .turn_windows = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
