// EXAONE 4: norms behind each block and of each query and key head; layers without a window do not rotate
// where others have one. LG AI Research, "EXAONE 4.0: Unified Large Language Models Integrating Non-reasoning
// and Reasoning Modes", arXiv 2507.11407.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_exaone4;
const Arch arch_exaone4 = {
    .name = "exaone4",
    .rope = Rope::Halves,
    .tensors = {.attention_norm = {},
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .ffn_norm = {},
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .window_period = 4,
    .turn_windows = true,
};
}  // namespace greta
