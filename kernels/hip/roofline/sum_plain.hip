// sum_plain: y[i] = the sum over j of x[i][j], modulo 2^32     x [pieces][width] uint
//   grid    (pieces)
//   group   GROUP threads; each has four loads of 16 bytes under way
//   shared  8 bytes a wave for sums
//   moves   x once: it measures bandwidth
// The argument block is SumBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/reduce.h"

KERNEL(GROUP) void KERNEL_NAME(SumBlock p) {
  const uint count = p.width / 4;
  const auto x = (const GLOBAL uvec4*)(p.x + uint64_t(group_x()) * p.width);
  uvec4 sums = {};
  uint i = thread_x();
  for (; i + 3 * GROUP < count; i += 4 * GROUP)
    sums += (x[i] + x[i + GROUP]) + (x[i + 2 * GROUP] + x[i + 3 * GROUP]);
  for (; i < count; i += GROUP) sums += x[i];
  const uint sum = group_sum(sums.x + sums.y + sums.z + sums.w);
  if (thread_x() == 0) p.y[group_x()] = sum;
}
