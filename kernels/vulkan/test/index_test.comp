// index_test, for the tests of devices: y[i] = i * scale + base, i < count
//   grid    (count / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   y once
// The argument block is IndexBlock of tests/support/device_kernels.h.
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

struct IndexBlock {
  ADDRESS(uint) y;
  uint count, scale, base;
};
layout(push_constant, scalar) uniform Push { IndexBlock p; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < p.count) p.y.at[i] = i * p.scale + p.base;
}
