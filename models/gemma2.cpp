// Gemma 2: norms before and after each block, soft caps, a window in every second layer, GELU.
// Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", arXiv 2408.00118. The 27B model,
// with 46 layers, scales scores by its width over its heads. Converters have added 1 to the norms' gains.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gemma2;
const Arch arch_gemma2 = {
    .name = "gemma2",
    .rope = Rope::Halves,
    .activation = Activation::Gelu,
    .tensors = {.post_attention_norm = "blk.%u.post_attention_norm.weight",
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .scale_embedding = true,
    .window = 4096,
    .window_period = 2,
    .attention_softcap = 50,
    .final_softcap = 30,
    .wide_query_layers = 46,
};
}  // namespace greta
