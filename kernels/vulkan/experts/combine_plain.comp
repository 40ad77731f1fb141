// combine_plain: group (t, j) is GROUP values of token t, a thread one of them.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { CombineBlock p; };

void main() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  float sum = 0;
  for (uint j = 0; j < p.used; ++j)
    sum += p.weights.at[t * p.used + j] * p.x.at[(t * p.used + j) * p.width + i];
  p.y.at[t * p.width + i] = sum;
}
