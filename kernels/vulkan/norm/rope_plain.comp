// rope_plain: y[t][h] = x[t][h] with its first rope_width values rotated by the position of t     float32
//   grid    (tokens, heads * rope_width / (2 * GROUP))
//   group   GROUP threads with a pair of values each
//   shared  none
//   moves   the rotated values of x and y once; the table's row once for each head, from the caches
// The argument block is RopeBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { RopeBlock p; CHAIN_BEHIND; };

void rotate_pair() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  const uint pairs = p.rope_width / 2, head = i / pairs, pair = i % pairs;
  StepState_address step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens) || head >= p.heads) return;
  const uint a = p.rope_halves != 0 ? pair : 2 * pair, b = p.rope_halves != 0 ? pair + pairs : 2 * pair + 1;
  const uint turn = step.state.row[t].position * p.rope_width + 2 * pair;
  const float c = p.table.at[turn], s = p.table.at[turn + 1];
  const uint from = (t * p.heads + head) * p.x_stride, to = (t * p.heads + head) * p.y_stride;
  const float xa = p.x.at[from + a], xb = p.x.at[from + b];
  p.y.at[to + a] = xa * c - xb * s;
  p.y.at[to + b] = xa * s + xb * c;
}

void main() {
  chain_wait(chain);
  rotate_pair();
  chain_end(chain);
}
