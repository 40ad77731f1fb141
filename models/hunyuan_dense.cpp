// Hunyuan 0.5B to 7B: norms of each query and key head behind the rotation.
// Tencent, "Hunyuan-7B", 2025; transformers' modeling_hunyuan_v1_dense.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_hunyuan_dense;
const Arch arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .rope = Rope::Halves,
    .tensors = {.query_norm = "blk.%u.attn_q_norm.weight", .key_norm = "blk.%u.attn_k_norm.weight"},
    .norm_turned = true,
};
}  // namespace greta
