// Granite with windows: the first of each four layers sees all positions, and each head has an attention
// sink. IBM, 2026; transformers' modeling_granite_swa.py.
#include "engine/arch.h"

namespace greta {
extern const Arch arch_granite_swa;
const Arch arch_granite_swa = {
    .name = "granite_swa",
    .rope = Rope::Pairs,
    .tensors = {.sinks = "blk.%u.attn_sinks.weight"},
    .scales = true,
    .window_required = true,
    .window_period = 4,
    .window_behind = true,
    .rope_by_finetuned = true,
};
}  // namespace greta
