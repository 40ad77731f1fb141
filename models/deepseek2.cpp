// DeepSeek V2, V2-Lite, V3 and models of their form: latent attention, and shared experts, which the first
// layers or all layers may lack. DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, and "DeepSeek-V3 Technical
// Report", arXiv 2412.19437.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_deepseek2;
const Arch arch_deepseek2 = {
    .name = "deepseek2",
    .rope = Rope::Pairs,
    .latent = true,
};
}  // namespace greta
