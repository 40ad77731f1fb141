// convert_f16: y[i][k] = x[i][k] as float16, saturated     x [rows][depth] float32
//   grid    (rows)
//   group   GROUP threads; each takes 4 values at a time
//   shared  none
//   moves   4 bytes of x and 2 bytes of y a value
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/hip/halves.h"
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(ConvertBlock p) {
  const Step step = step_of(p.step);
  const uint i = group_x();
  if (i >= live_rows(step, p.rows_of)) return;
  const uint64_t x = uint64_t(p.x) + uint64_t(source_row(step, p.rows_of, i)) * p.depth * 4;
  GLOBAL byte* y = p.y + uint64_t(i) * p.depth * 2;
  for (uint k = thread_x() * 4; k < p.depth; k += GROUP * 4) store_halves(y, k, load<vec4>(x + k * 4));
}
