// Gemma 4 for text: Gemma 3's norms and windows. Layers that see all have wider heads, of which a part
// rotates, and may take keys for values; values are normalised. Experts may lie beside the dense block,
// layers may have embeddings of their own, and the last ones may use the caches of earlier ones. Reference:
// Gemma4 of Hugging Face Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gemma4;
const Arch arch_gemma4 = {
    .name = "gemma4",
    .rope = Rope::Halves,
    .activation = Activation::Gelu,
    .tensors = {.layer_embedding = "per_layer_token_embd.weight",
                .layer_projection = "per_layer_model_proj.weight",
                .layer_projection_norm = "per_layer_proj_norm.weight",
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .post_attention_norm = "blk.%u.post_attention_norm.weight",
                .post_ffn_norm = "blk.%u.post_ffw_norm.weight",
                .layer_gate = "blk.%u.inp_gate.weight",
                .layer_up = "blk.%u.proj.weight",
                .layer_norm = "blk.%u.post_norm.weight",
                .layer_scale = maybe("blk.%u.layer_output_scale.weight"),
                .expert_gate_up = "blk.%u.ffn_gate_up_exps.weight",
                .router_gain = "blk.%u.ffn_gate_inp.scale",
                .expert_norm = "blk.%u.pre_ffw_norm_2.weight",
                .post_dense_norm = "blk.%u.post_ffw_norm_1.weight",
                .post_expert_norm = "blk.%u.post_ffw_norm_2.weight"},
    .scale_embedding = true,
    .norm_values = true,
    .keys_as_values = true,
    .shared_caches = true,
    .window_required = true,
    .window_period = 6,
    .window_sizes = true,
    .window_rope = true,
    .window_rope_base = 10000,
    .attention_scale = 1,
    .experts_beside = true,
    .normalise_experts = true,
};
}  // namespace greta
