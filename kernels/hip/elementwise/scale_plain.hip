// scale_plain: y[i][j] = scales[e] * y[i][j] + bias[e], for the expert e = ids[i][j] of a slot, or 0
//   y [rows][slots][width / slots] float32
//   grid    (rows, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   y twice
// The argument block is ScaleBlock in kernels/abi/ops.h.
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(ScaleBlock p) {
  const uint row = group_x(), i = group_y() * GROUP + thread_x();
  if (row >= live_rows(step_of(p.step), p.rows_of) || i >= p.width) return;
  const uint width = p.width / p.slots, slot = row * p.slots + i / width;
  const uint id = p.ids ? p.ids[slot] : 0;
  const uint expert = id < p.experts ? id : p.experts - 1;  // never past the scales
  const uint at = row * p.width + i;
  const float y = p.scales[expert] * p.y[at];
  p.y[at] = p.bias ? y + p.bias[expert * width + i % width] : y;
}
