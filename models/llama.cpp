// Llama: pre-norm RMS, grouped-query attention, rotary pairs, SwiGLU. Used for Llama 1 to 3.3 and
// models of its form: TinyLlama, Mistral 7B with its window, SmolLM2, Yi, and with experts Mixtral.
// Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", arXiv 2302.13971; Jiang et al.,
// "Mistral 7B", arXiv 2310.06825, and "Mixtral of Experts", arXiv 2401.04088.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_llama;
const Arch arch_llama = {
    .name = "llama",
    .rope = Rope::Pairs,
    .activation = Activation::Silu,
    .normalise_experts = true,
};
}  // namespace greta
