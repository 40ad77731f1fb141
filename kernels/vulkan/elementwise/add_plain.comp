// add_plain: group (t, j) is GROUP values of token t, a thread one of them.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { AddBlock p; };

void main() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  const uint at = t * p.width + i;
  p.y.at[at] = p.a.at[at] + p.scale * p.b.at[at];
}
