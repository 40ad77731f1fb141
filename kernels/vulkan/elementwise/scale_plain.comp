// scale_plain: y[i][j] = scales[e] * y[i][j] + bias[e], for the expert e = ids[i][j] of a slot, or 0
//   y [rows][slots][width / slots] float32
//   grid    (rows, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   y twice
// The argument block is ScaleBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { ScaleBlock p; CHAIN_BEHIND; };

void scale() {
  const uint row = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (row >= live_rows(step_of(p.step), p.rows_of) || i >= p.width) return;
  const uint width = p.width / p.slots, slot = row * p.slots + i / width;
  const uint id = uint64_t(p.ids) != 0 ? p.ids.at[slot] : 0;
  const uint expert = min(id, p.experts - 1);  // never past the scales
  const uint at = row * p.width + i;
  const float y = p.scales.at[expert] * p.y.at[at];
  p.y.at[at] = uint64_t(p.bias) != 0 ? y + p.bias.at[expert * width + i % width] : y;
}

void main() {
  chain_wait(chain);
  scale();
  chain_end(chain);
}
