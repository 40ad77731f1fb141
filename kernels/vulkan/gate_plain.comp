// gate_plain: group (t, j) is GROUP values of token t, a thread one of them.
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/activation.h"
#include "kernels/vulkan/halves.h"

layout(push_constant, scalar) uniform Push { GateBlock p; };

void main() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  const uint at = t * p.width + i;
  const float y = gated(p.activation, p.gate.at[at], p.up.at[at]);
  p.y.at[at] = y;
  store_half(p.halves, at, y);
}
