// Granite 3 with experts: a softmax over the chosen ones, which is the normalised softmax over all.
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
