// multiply_plain: y[t][h][i] = factor(x[t][h][i * x_step]) * by[t][h][i]     [tokens][heads][width] float32
//   grid    (tokens, heads * width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x, by and y once
// The argument block is MultiplyBlock in kernels/abi/multiply.h.
#include "kernels/abi/multiply.h"
#include "kernels/hip/math.h"
#include "kernels/hip/step.h"

GLSL_BEGIN
#include "kernels/gpu/multiply.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(MultiplyBlock p) {
  const uint t = group_x(), i = group_y() * GROUP + thread_x();
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.heads * p.width) return;
  const uint head = t * p.heads + i / p.width, at = i % p.width;
  p.y[head * p.width + at] =
      multiplied(p, p.x[head * p.x_stride + at * p.x_step], p.by[head * p.by_stride + at]);
}
