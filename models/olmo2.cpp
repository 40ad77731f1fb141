// OLMo 2: norms only after each block, and of all query and all key heads together. OLMo 3 is the same with a
// window in three of four layers. OLMo Team, "2 OLMo 2 Furious", arXiv 2501.00656; "OLMo 3", 2025.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_olmo2;
const Arch arch_olmo2 = {
    .name = "olmo2",
    .rope = Rope::Halves,
    .tensors = {.attention_norm = {},
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .ffn_norm = {},
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .norm_all_heads = true,
    .window_period = 4,
    .window_rope = true,
};
}  // namespace greta
