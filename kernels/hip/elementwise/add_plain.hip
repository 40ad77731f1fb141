// add_plain: y[t][i] = a[t][i] + scale * b[t][i]     [tokens][width] float32
//   grid    (tokens, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   a, b and y once
// The argument block is AddBlock in kernels/abi/ops.h.
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(AddBlock p) {
  const uint t = group_x(), i = group_y() * GROUP + thread_x();
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  const uint at = t * p.width + i;
  p.y[at] = p.a[at] + p.scale * p.b[at];
}
