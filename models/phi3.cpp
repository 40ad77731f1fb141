// Phi 3, 3.5 and 4-mini: query, key and value in one tensor, gate and up in another, LongRoPE, part of a head
// rotated. Abdin et al., "Phi-3 Technical Report", arXiv 2404.14219; Ding et al., "LongRoPE", arXiv
// 2402.13753.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_phi3;
const Arch arch_phi3 = {
    .name = "phi3",
    .rope = Rope::Halves,
    .tensors = {.gate_up = "blk.%u.ffn_up.weight", .gate_bias = {}, .up_bias = {}},
};
}  // namespace greta
