// softcap_plain: y[i][k] = cap * tanh(scale * x[i][k] / cap); with cap 0 y = scale * x
//   x [rows][width] float32
//   grid    (rows, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x and y once
// The argument block is SoftcapBlock in kernels/abi/ops.h.
#include "kernels/hip/math.h"
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(SoftcapBlock p) {
  const Step step = step_of(p.step);
  const uint row = group_x(), i = group_y() * GROUP + thread_x();
  if (row >= live_rows(step, p.rows_of) || i >= p.width) return;
  const float x = p.scale * p.x[source_row(step, p.rows_of, row) * p.width + i];
  p.y[row * p.y_stride + i] = p.cap > 0 ? softcap_f32(p.cap, x) : x;
}
