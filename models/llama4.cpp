// Llama 4: of four layers three rotate, normalise heads without a gain (not Maverick, which has 128 experts)
// and see the tokens of their chunk; in the fourth queries grow with their position. One expert of a layer
// reads its input times its weight, beside a shared one. Meta, "The Llama 4 herd", 2025; transformers'
// modeling_llama4.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_llama4;
const Arch arch_llama4 = {
    .name = "llama4",
    .rope = Rope::Pairs,
    .norm_heads = true,
    .plain_heads = 128,
    .still_temperature = 0.1f,
    .window = 8192,
    .chunks = true,
    .window_period = 4,
    .turn_windows = true,
    .experts_by_router = true,
    .scale_inputs = true,
};
}  // namespace greta
