// Llama: pre-norm RMS, grouped-query attention, rotary pairs, SwiGLU. Serves Llama 1 to 3.2 and what
// was converted to its form (TinyLlama, Mistral 7B without its window, SmolLM2, Yi).
// Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", arXiv 2302.13971.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_llama;
const Arch arch_llama = {
    .name = "llama",
    .rope = Rope::Pairs,
    .activation = Activation::Silu,
    .tensors = {},
};
}  // namespace greta
