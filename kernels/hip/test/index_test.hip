// index_test, for the tests of devices: y[i] = i * scale + base, i < count
//   grid    (count / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   y once
// The argument block is IndexTestBlock of tests/support/device_kernels.h.
#include "kernels/abi/abi.h"
#include "kernels/hip/device.h"

struct IndexTestBlock {
  ADDRESS(uint) y;
  uint count, scale, base;
};

KERNEL(GROUP) void KERNEL_NAME(IndexTestBlock p) {
  const uint i = group_x() * GROUP + thread_x();
  if (i < p.count) p.y[i] = i * p.scale + p.base;
}
