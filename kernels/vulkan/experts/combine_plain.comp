// combine_plain: y[t][i] = sum over j of weights[t][j] * x[t][j][i], in order of j
//   x [tokens][used][width] float32
//   grid    (tokens, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x and y once; the weights once for each value, from the caches
// The argument block is CombineBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { CombineBlock p; CHAIN_BEHIND; };

void combine() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  float sum = 0;
  for (uint j = 0; j < p.used; ++j)
    sum += p.weights.at[t * p.used + j] * p.x.at[(t * p.used + j) * p.width + i];
  p.y.at[t * p.width + i] = sum;
}

void main() {
  chain_wait(chain);
  combine();
  chain_end(chain);
}
