// Qwen 1.5 and 2 with experts, whose weights are not normalised, and a shared one that has a weight of its
// own. Yang et al., "Qwen2 Technical Report", arXiv 2407.10671.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_qwen2moe;
const Arch arch_qwen2moe = {
    .name = "qwen2moe",
    .rope = Rope::Halves,
    .tensors = {.query_bias = "blk.%u.attn_q.bias",
                .key_bias = "blk.%u.attn_k.bias",
                .value_bias = "blk.%u.attn_v.bias",
                .shared_router = "blk.%u.ffn_gate_inp_shexp.weight"},
    .needs_experts = true,
};
}  // namespace greta
