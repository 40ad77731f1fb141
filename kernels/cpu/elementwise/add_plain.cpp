// add_plain: y[t][i] = a[t][i] + scale * b[t][i]     [tokens][width] float32
//   grid    (tokens)
//   group   one token
//   scratch none
//   moves   a, b and y once
// The argument block is AddBlock in kernels/abi/ops.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const AddBlock& b = *(const AddBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) {
    const uint64_t at = uint64_t(t) * b.width;
    const float* x = (const float*)b.a + at;
    const float* more = (const float*)b.b + at;
    float* y = (float*)b.y + at;
    for (uint32_t i = 0; i < b.width; ++i) y[i] = x[i] + b.scale * more[i];
  }
}
