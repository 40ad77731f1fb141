// add_plain: y[t][i] = a[t][i] + scale * b[t][i]     [tokens][width] float32
//   grid    (tokens, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   a, b and y once
// The argument block is AddBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { AddBlock p; CHAIN_BEHIND; };

void add() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  const uint at = t * p.width + i;
  p.y.at[at] = p.a.at[at] + p.scale * p.b.at[at];
}

void main() {
  chain_wait(chain);
  add();
  chain_end(chain);
}
