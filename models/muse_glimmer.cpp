// Muse Glimmer, the part that reads texts: embeddings are normalised without a gain, norms before and behind
// each block have epsilons of their own, each value of attention has a gate, layers without a window do not
// rotate, and logits have a factor before their soft cap. Reference: MuseGlimmer of Hugging Face
// Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_muse_glimmer;
const Arch arch_muse_glimmer = {
    .name = "muse-glimmer",
    .rope = Rope::Pairs,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .attention_gate = "blk.%u.attn_gate.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight"},
    .norm_embedding = true,
    .post_epsilon = 1e-8f,
    .logit_factor = true,
    .window_required = true,
    .window_period = 4,
    .turn_windows = true,
};
}  // namespace greta
