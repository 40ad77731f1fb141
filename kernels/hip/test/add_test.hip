// add_test, for the tests of devices: y[i] = a[i] + b[i], i < count
//   grid    (count / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   a, b and y once
// The argument block is AddTestBlock of tests/support/device_kernels.h.
#include "kernels/abi/abi.h"
#include "kernels/hip/device.h"

struct AddTestBlock {
  ADDRESS(uint) a;
  ADDRESS(uint) b;
  ADDRESS(uint) y;
  ADDRESS(uint) chain;
  uint count;
};

KERNEL(GROUP) void KERNEL_NAME(AddTestBlock p) {
  const uint i = group_x() * GROUP + thread_x();
  if (i < p.count) p.y[i] = p.a[i] + p.b[i];
}
