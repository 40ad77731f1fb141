// add_test, for tests of devices: y[i] = a[i] + b[i], as AddTestBlock of tests/support/device_kernels.h. Takes part in chains.
//   grid   ceil(count / group)
//   group  one value for each thread
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"
#include "kernels/vulkan/chain.h"

struct AddBlock {
  ADDRESS(uint) a, b, y, chain;
  uint count;
};
layout(push_constant, scalar) uniform Push { AddBlock p; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  chain_wait(uint64_t(p.chain));
  if (i < p.count) p.y.at[i] = p.a.at[i] + p.b.at[i];
  chain_end(uint64_t(p.chain));
}
