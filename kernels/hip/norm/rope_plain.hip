// rope_plain: y[t][h] = x[t][h] with its first rope_width values rotated by the position of t     float32
//   grid    (tokens, heads * rope_width / (2 * GROUP))
//   group   GROUP threads with a pair of values each
//   shared  none
//   moves   the rotated values of x and y once; the table's row once for each head, from the caches
// The argument block is RopeBlock in kernels/abi/ops.h.
#include "kernels/hip/step.h"

KERNEL(GROUP) void KERNEL_NAME(RopeBlock p) {
  const Step step = step_of(p.step);
  const uint t = group_x(), i = group_y() * GROUP + thread_x();
  const uint pairs = p.rope_width / 2, head = i / pairs, pair = i % pairs;
  if (t >= live_rows(step, kRowsTokens) || head >= p.heads) return;
  const uint a = p.rope_halves ? pair : 2 * pair, b = p.rope_halves ? pair + pairs : 2 * pair + 1;
  const uint turn = step->row[t].position * p.rope_width + 2 * pair;
  const float c = p.table[turn], s = p.table[turn + 1];
  const uint from = (t * p.heads + head) * p.x_stride, to = (t * p.heads + head) * p.y_stride;
  const float xa = p.x[from + a], xb = p.x[from + b];
  p.y[to + a] = xa * c - xb * s;
  p.y[to + b] = xa * s + xb * c;
}
