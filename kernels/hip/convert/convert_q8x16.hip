// convert_q8x16: y[i] = x[i] * gain in the activation format q8x16 (kernels/abi/q8.h)
//   x [rows][depth] float32
//   grid    (rows, depth / (16 * GROUP))
//   group   GROUP threads; each takes 16 values, which share a scale
//   shared  none
//   moves   4 bytes of x and 1.75 bytes of y a value; the gain once for each row, from the caches
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/step.h"
GLSL_BEGIN
#include "kernels/gpu/q8x16.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(ConvertBlock p) {
  const Step step = step_of(p.step);
  const uint row = group_x(), block = group_y() * GROUP + thread_x();
  if (row >= live_rows(step, p.rows_of) || block >= p.depth / 16) return;
  const auto x = (const GLOBAL float*)p.x + uint64_t(source_row(step, p.rows_of, row)) * p.depth + block * 16;
  float values[16], squares = 0;
  for (uint i = 0; i < 16; ++i) {
    values[i] = x[i];
    squares = __builtin_fmaf(values[i], values[i], squares);
    if (p.gain) values[i] *= p.gain[block * 16 + i];
  }
  store_q8x16(uint64_t(p.y) + uint64_t(row) * q8x16_row_bytes(p.depth), p.depth, block, values, squares);
}
