// add_test, for the tests of devices: y[i] = a[i] + b[i], i < count. It takes part in the chain.
//   grid    (count / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   a, b and y once
// The argument block is AddTestBlock of tests/support/device_kernels.h.
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
