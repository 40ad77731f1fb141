// OLMo: llama with norms that subtract the mean and have neither a gain nor a bias. Groeneveld et al., "OLMo:
// Accelerating the Science of Language Models", arXiv 2402.00838.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_olmo;
const Arch arch_olmo = {
    .name = "olmo",
    .tensors = {.output_norm = {}, .attention_norm = {}, .ffn_norm = {}},
    .layer_norm = true,
};
}  // namespace greta
