// cast_plain: y[i][k] = x[i][k] in another type     [rows][width] float32, float16 or bfloat16
//   grid    (rows, width / (4 * GROUP))
//   group   GROUP threads with four values each
//   shared  none
//   moves   x and y once
// The argument block is CastBlock in kernels/abi/cast.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/step.h"

GLSL_BEGIN
#include "kernels/gpu/cast.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(CastBlock p) {
  const Step step = step_of(p.step);
  const uint i = group_x();
  if (i >= live_rows(step, p.rows_of)) return;
  cast_four(p, source_row(step, p.rows_of, i), i, 4 * (group_y() * GROUP + thread_x()));
}
