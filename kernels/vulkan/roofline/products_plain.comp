// products_plain: y[i] = the sum over m, n and k of w[m][k] * x[n][k], p.steps times, modulo 2^32
//   w, x float16
//   grid    (groups)
//   group   GROUP threads. They multiply in float32, as matmul_tiles_plain does. A thread takes four columns,
//           and every GROUP / 8-th repetition
//   shared  GROUP * 2 bytes for sums
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/ops.h"
#include "kernels/vulkan/reduce.h"

GRETA_ABI_BUFFER(uvec2, uvec2, 8)
layout(push_constant, scalar) uniform Push { ProductsBlock p; };

const uint kRows = 8, kTokens = 4;  // TILE of the kernel in CMakeLists.txt
const uint kColumnFours = kProductsDepth / 4;

vec4 operand(uint row, uint four) {
  const uvec2 halves = uvec2_address(uint64_t(p.operands)).at[row * kColumnFours + four];
  return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}

void main() {
  const uint four = gl_LocalInvocationIndex % kColumnFours, first = gl_LocalInvocationIndex / kColumnFours;
  vec4 w[kRows], x[kTokens];
  float sums[kRows * kTokens];
  [[unroll]] for (uint m = 0; m < kRows; ++m) w[m] = operand(m, four);
  [[unroll]] for (uint n = 0; n < kTokens; ++n) x[n] = operand(kRows + n, four);
  [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i) sums[i] = 0;
  [[dont_unroll]] for (uint repetition = first; repetition < p.steps; repetition += GROUP / kColumnFours)
    [[unroll]] for (uint k = 0; k < 4; ++k)
      [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i)
        sums[i] = fma(w[i / kTokens][k], x[i % kTokens][k], sums[i]);
  uint sum = 0;
  [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i) sum += uint(sums[i]);
  const uint64_t all = group_sum(uint64_t(sum));
  if (gl_LocalInvocationIndex == 0) p.y.at[gl_WorkGroupID.x] = uint(all);
}
