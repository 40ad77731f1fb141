// add_plain: one group is one token.
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
