// gpt-oss: experts with clamped gates, biases everywhere, an attention sink for each head, every second layer
// sees a window, YaRN whose range is not rounded. OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", arXiv
// 2508.10925.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gpt_oss;
const Arch arch_gpt_oss = {
    .name = "gpt-oss",
    .rope = Rope::Halves,
    .activation = Activation::Clamped,
    .tensors = {.output = "output.weight",
                .query_bias = "blk.%u.attn_q.bias",
                .key_bias = "blk.%u.attn_k.bias",
                .value_bias = "blk.%u.attn_v.bias",
                .sinks = "blk.%u.attn_sinks.weight",
                .attention_output_bias = "blk.%u.attn_output.bias",
                .ffn_norm = "blk.%u.post_attention_norm.weight",
                .router_bias = "blk.%u.ffn_gate_inp.bias",
                .expert_gate_bias = "blk.%u.ffn_gate_exps.bias",
                .expert_up_bias = "blk.%u.ffn_up_exps.bias",
                .expert_down_bias = "blk.%u.ffn_down_exps.bias"},
    .window_required = true,
    .window_period = 2,
    .whole_yarn_range = false,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
