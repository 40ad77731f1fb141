// Granite 3: llama with multipliers of embeddings, residuals, scores and logits.
// IBM, "Granite 3.0 Language Models", 2024; transformers' modeling_granite.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_granite;
const Arch arch_granite = {
    .name = "granite",
    .rope = Rope::Pairs,
    .scales = true,
    .rope_by_finetuned = true,
};
}  // namespace greta
