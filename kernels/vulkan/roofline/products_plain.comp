// products_plain: float32, as matmul_tiles_plain multiplies. A thread takes four columns of every 32nd step.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/ops.h"
#include "kernels/vulkan/reduce.h"

GRETA_ABI_BUFFER(uvec2, uvec2, 8)
layout(push_constant, scalar) uniform Push { ProductsBlock p; };

const uint kRows = 8, kTokens = 4;  // TILE
const uint kSlices = kProductsDepth / 4;

vec4 operand(uint row, uint slice) {
  const uvec2 halves = uvec2_address(uint64_t(p.operands)).at[row * kSlices + slice];
  return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}

void main() {
  const uint slice = gl_LocalInvocationIndex % kSlices, first = gl_LocalInvocationIndex / kSlices;
  vec4 w[kRows], x[kTokens];
  float sums[kRows * kTokens];
  [[unroll]] for (uint m = 0; m < kRows; ++m) w[m] = operand(m, slice);
  [[unroll]] for (uint n = 0; n < kTokens; ++n) x[n] = operand(kRows + n, slice);
  [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i) sums[i] = 0;
  [[dont_unroll]] for (uint step = first; step < p.steps; step += GROUP / kSlices)
    [[unroll]] for (uint k = 0; k < 4; ++k)
      [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i)
        sums[i] = fma(w[i / kTokens][k], x[i % kTokens][k], sums[i]);
  uint sum = 0;
  [[unroll]] for (uint i = 0; i < kRows * kTokens; ++i) sum += uint(sums[i]);
  const uint64_t all = group_sum(uint64_t(sum));
  if (gl_LocalInvocationIndex == 0) p.y.at[gl_WorkGroupID.x] = uint(all);
}
