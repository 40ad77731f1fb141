// index_test, for tests of devices: y[i] = i * scale + base, as IndexBlock of tests/support/device_kernels.h.
//   grid   ceil(count / group)
//   group  one value for each thread
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
