// Gemma 3 for text: norms before and after each block and of each query and key head; five layers with a
// window, which rotate by a base of their own, then one without. Gemma Team, "Gemma 3 Technical Report",
// arXiv 2503.19786. The 27B model, with 62 layers, scales scores by its width over its heads.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gemma3;
const Arch arch_gemma3 = {
    .name = "gemma3",
    .rope = Rope::Halves,
    .activation = Activation::Gelu,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .scale_embedding = true,
    .window_period = 6,
    .window_rope = true,
    .window_rope_base = 10000,
    .wide_query_layers = 62,
};
}  // namespace greta
