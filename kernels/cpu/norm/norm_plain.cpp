// norm_plain: y[i][h] = x[i][h] / rms(x[i][h]) * gain     x [rows][heads][width] float32
//   grid    (rows)
//   group   one row with all its heads
//   scratch none
//   moves   x twice, y once
// The argument block is NormBlock in kernels/abi/ops.h.
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const NormBlock& b = *(const NormBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i) {
    const uint64_t from = uint64_t(source_row(step, b.rows_of, i)) * b.x_stride;
    const uint64_t to = uint64_t(i) * b.y_stride;
    for (uint32_t h = 0; h < b.heads; ++h) {
      const float* x = (const float*)b.x + from + uint64_t(h) * b.width;
      float* y = (float*)b.y + to + uint64_t(h) * b.width;
      norm_apply(x, (const float*)b.gain, norm_factor(x, b.width, b.epsilon), b.width, y);
    }
  }
}
