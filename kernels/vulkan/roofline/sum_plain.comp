// sum_plain: y[i] = the sum over j of x[i][j], modulo 2^32     x [pieces][width] uint
//   grid    (pieces)
//   group   GROUP threads; each has four loads of 16 bytes under way
//   shared  GROUP * 2 bytes for sums
//   moves   x once: it measures bandwidth
// The argument block is SumBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/ops.h"
#include "kernels/vulkan/reduce.h"

GRETA_ABI_BUFFER(uvec4, uvec4, 16)
layout(push_constant, scalar) uniform Push { SumBlock p; };

void main() {
  const uint count = p.width / 4;
  uvec4_address x = uvec4_address(uint64_t(p.x) + uint64_t(gl_WorkGroupID.x) * p.width * 4);
  uvec4 sums = uvec4(0);
  for (uint i = gl_LocalInvocationIndex; i < count; i += 4 * GROUP)
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (i + j * GROUP < count) sums += x.at[i + j * GROUP];
  const uint64_t sum = group_sum(uint64_t(sums.x + sums.y + sums.z + sums.w));
  if (gl_LocalInvocationIndex == 0) p.y.at[gl_WorkGroupID.x] = uint(sum);
}
