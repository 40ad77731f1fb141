// Gemma 1 and CodeGemma: llama with scaled embeddings, GELU, heads of a width of their own and a tied head.
// Gemma Team, "Gemma: Open Models Based on Gemini Research and Technology", arXiv 2403.08295. Converters have
// added 1 to the norms' gains.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_gemma;
const Arch arch_gemma = {
    .name = "gemma",
    .rope = Rope::Halves,
    .activation = Activation::Gelu,
    .scale_embedding = true,
};
}  // namespace greta
