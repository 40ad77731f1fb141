// multiply_plain: y[t][h][i] = factor(x[t][h][i * x_step]) * by[t][h][i]     [tokens][heads][width] float32
//   grid    (tokens, heads * width / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   x, by and y once
// The argument block is MultiplyBlock in kernels/abi/multiply.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/gpu/multiply.h"

layout(push_constant, scalar) uniform Push { MultiplyBlock p; CHAIN_BEHIND; };

void multiply() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.heads * p.width) return;
  const uint head = t * p.heads + i / p.width, at = i % p.width;
  p.y.at[head * p.width + at] =
      multiplied(p, p.x.at[head * p.x_stride + at * p.x_step], p.by.at[head * p.by_stride + at]);
}

void main() {
  chain_wait(chain);
  multiply();
  chain_end(chain);
}
