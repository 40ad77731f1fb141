// convert_f16: y[i][k] = x[i][k] as float16, saturated, or NaN     x [rows][depth] float32
//   grid    (rows)
//   group   GROUP threads; each takes 8 values at a time
//   shared  none
//   moves   4 bytes of x and 2 bytes of y a value
// The argument block is ConvertBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/step.h"
GRETA_ABI_BUFFER(vec4, vec4, 16)
GRETA_ABI_BUFFER(uvec4, uvec4, 16)

layout(push_constant, scalar) uniform Push { ConvertBlock p; };

uvec2 halves(vec4 x) {
  const f16vec4 y = to_halves(x);
  return uvec2(packFloat2x16(y.xy), packFloat2x16(y.zw));
}

void main() {
  StepState_address step = step_of(p.step);
  const uint i = gl_WorkGroupID.x;
  if (i >= live_rows(step, p.rows_of)) return;
  vec4_address x = vec4_address(uint64_t(p.x) + uint64_t(source_row(step, p.rows_of, i)) * p.depth * 4);
  uvec4_address y = uvec4_address(uint64_t(p.y) + uint64_t(i) * p.depth * 2);
  for (uint at = gl_LocalInvocationIndex; at < p.depth / 8; at += gl_WorkGroupSize.x)
    y.at[at] = uvec4(halves(x.at[at * 2]), halves(x.at[at * 2 + 1]));
}
