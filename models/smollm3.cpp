// SmolLM 3: llama in which every fourth layer does not rotate.
// Hugging Face, "SmolLM3: smol, multilingual, long-context reasoner", 2025; Yang et al., "RoPE to NoPE and
// Back Again", arXiv 2501.18795.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_smollm3;
const Arch arch_smollm3 = {
    .name = "smollm3",
    .rope = Rope::Pairs,
    .rope_skip_period = 4,
};
}  // namespace greta
