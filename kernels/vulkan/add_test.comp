// add_test, for tests of devices: y[i] = a[i] + b[i], as AddBlock of tests/support/device_kernels.h.
//   grid   ceil(count / group)
//   group  one value for each thread
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

struct AddBlock {
  ADDRESS(uint) a, b, y;
  uint count;
};
layout(push_constant, scalar) uniform Push { AddBlock p; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < p.count) p.y.at[i] = p.a.at[i] + p.b.at[i];
}
