// cast_plain: y[i][k] = x[i][k] in another type     [rows][width] float32, float16 or bfloat16
//   grid    (rows, width / (4 * GROUP))
//   group   GROUP threads with four values each
//   shared  none
//   moves   x and y once
// The argument block is CastBlock in kernels/abi/cast.h.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#include "kernels/vulkan/step.h"
#include "kernels/gpu/cast.h"

layout(push_constant, scalar) uniform Push { CastBlock p; };

void main() {
  StepState_address step = step_of(p.step);
  const uint i = gl_WorkGroupID.x;
  if (i >= live_rows(step, p.rows_of)) return;
  cast_four(p, source_row(step, p.rows_of, i), i, 4 * (gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex));
}
