// LFM2 with experts, chosen by a sigmoid and a bias, behind some dense layers.
// Liquid AI, "LFM2 Technical Report", arXiv 2511.23404.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_lfm2moe;
const Arch arch_lfm2moe = {
    .name = "lfm2moe",
    .rope = Rope::Halves,
    .tensors = {.output_norm = "token_embd_norm.weight",
                .query_bias = {},
                .key_bias = {},
                .value_bias = {},
                .query_norm = "blk.%u.attn_q_norm.weight",
                .key_norm = "blk.%u.attn_k_norm.weight",
                .attention_output_bias = {},
                .state_in = "blk.%u.shortconv.in_proj.weight",
                .conv = "blk.%u.shortconv.conv.weight",
                .state_out = "blk.%u.shortconv.out_proj.weight",
                .router_bias = {},
                .expert_gate_bias = {},
                .expert_up_bias = {},
                .expert_down_bias = {}},
    .recurrence = Recurrence::ShortConv,
    .partial_layers = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
