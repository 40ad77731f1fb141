// Ministral 3 and the text part of Mistral Small 3.1 and later: llama, perhaps with YaRN and with queries
// that grow with their position. Mistral AI, "Ministral 3", 2025; transformers' modeling_ministral3.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_mistral3;
const Arch arch_mistral3 = {
    .name = "mistral3",
    .rope = Rope::Pairs,
    .temperature = true,
    .normalise_experts = true,
};
}  // namespace greta
