// DeepSeek V2, V2-Lite, V3 and what has their form: latent attention, shared experts, the first layers dense,
// or all of them.
// DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, and "DeepSeek-V3 Technical Report", arXiv 2412.19437.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_deepseek2;
const Arch arch_deepseek2 = {
    .name = "deepseek2",
    .rope = Rope::Pairs,
    .latent = true,
};
}  // namespace greta
