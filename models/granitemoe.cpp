// Granite 3 with experts: a softmax over those chosen, which is the softmax over all, normalised.
// IBM, "Granite 3.0 Language Models", 2024; transformers' modeling_granitemoe.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_granitemoe;
const Arch arch_granitemoe = {
    .name = "granitemoe",
    .rope = Rope::Pairs,
    .scales = true,
    .rope_by_finetuned = true,
    .needs_experts = true,
    .normalise_experts = true,
};
}  // namespace greta
