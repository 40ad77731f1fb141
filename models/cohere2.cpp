// Command R7B and Command A: as Command R, but of four layers three have a window, and the fourth does not
// rotate. Cohere, "Command A: An Enterprise-Ready Large Language Model", arXiv 2504.00698.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_cohere2;
const Arch arch_cohere2 = {
    .name = "cohere2",
    .layer_norm = true,
    .parallel = true,
    .one_norm = true,
    .logit_factor = true,
    .window_required = true,
    .window_period = 4,
    .turn_windows = true,
};
}  // namespace greta
