// softcap_plain: y[i][k] = cap * tanh(scale * x[i][k] / cap); with cap 0 y = scale * x
//   x [rows][width] float32
//   grid    (rows)
//   group   one row
//   scratch none
//   moves   x and y once
// The argument block is SoftcapBlock in kernels/abi/ops.h.
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const SoftcapBlock& b = *(const SoftcapBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i) {
    const float* x = (const float*)b.x + uint64_t(source_row(step, b.rows_of, i)) * b.width;
    float* y = (float*)b.y + uint64_t(i) * b.y_stride;
    for (uint32_t k = 0; k < b.width; ++k)
      y[k] = b.cap > 0 ? softcap_f32(b.cap, b.scale * x[k]) : b.scale * x[k];
  }
}
