// ERNIE 4.5 with experts: a softmax whose bias only serves the choice, normalised weights, shared experts,
// and rotary pairs. Baidu, "ERNIE 4.5 Technical Report", 2025.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_ernie4_5_moe;
const Arch arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .rope = Rope::Pairs,
    .needs_experts = true,
    .normalise_experts = true,
    .softmax_experts = true,
};
}  // namespace greta
