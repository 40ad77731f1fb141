// combine_plain: y[t][i] = sum over j of weights[t][j] * x[t][j][i], in order of j
//   x [tokens][used][width] float32
//   grid    (tokens, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x and y once; the weights once for each value, from the caches
// The argument block is CombineBlock in kernels/abi/ops.h.
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(CombineBlock p) {
  const uint t = group_x(), i = group_y() * GROUP + thread_x();
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  float sum = 0;
  for (uint j = 0; j < p.used; ++j) sum += p.weights[t * p.used + j] * p.x[(t * p.used + j) * p.width + i];
  p.y[t * p.width + i] = sum;
}
