// Arcee: llama without a gate, the activation is the square of what is positive. So et al., "Primer", arXiv
// 2109.08668. Reference: Arcee of Hugging Face Transformers.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_arcee;
const Arch arch_arcee = {
    .name = "arcee",
    .tensors = {.gate = {}},
};
}  // namespace greta
