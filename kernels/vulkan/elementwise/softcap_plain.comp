// softcap_plain: y[i][k] = cap * tanh(scale * x[i][k] / cap); with cap 0 y = scale * x
//   x [rows][width] float32
//   grid    (rows, width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x and y once
// The argument block is SoftcapBlock in kernels/abi/ops.h.
#include "kernels/gpu/math.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { SoftcapBlock p; CHAIN_BEHIND; };

void cap() {
  const uint row = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  StepState_address step = step_of(p.step);
  if (row >= live_rows(step, p.rows_of) || i >= p.width) return;
  const float x = p.scale * p.x.at[source_row(step, p.rows_of, row) * p.width + i];
  p.y.at[row * p.y_stride + i] = p.cap > 0 ? softcap_f32(p.cap, x) : x;
}

void main() {
  chain_wait(chain);
  cap();
  chain_end(chain);
}
