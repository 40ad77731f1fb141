// chain_check: whether the groups of a stage see what the stage before wrote, however long that takes.
//   values[s % 2][g] = s + 1, after the group has read s in values[(s + 1) % 2][other] for other groups
//   grid    (p.groups), one launch for each stage s of the chain
//   group   any number of threads; each reads the value of another group. Some groups are made slow
//   shared  none
//   moves   4 bytes a thread
// The argument block is ChainCheckBlock in kernels/abi/chain.h.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/vulkan/device.h"
#include "kernels/vulkan/chain.h"

layout(push_constant, scalar) uniform Push { ChainCheckBlock p; };

void main() {
  const uint group = gl_WorkGroupID.x, written = p.stage % 2 * p.groups, read = p.groups - written;
  chain_wait(uint64_t(p.chain));
  const uint other = (group + gl_LocalInvocationIndex * 37 + 1) % p.groups;
  uint value = p.values.at[read + other];
  if (p.stage > 0 && value != p.stage) atomicAdd(p.wrong.at[0], 1);
  for (uint i = 0; i < group % 7 * 64; ++i) value = value * 1664525 + 1013904223;  // some groups are slow
  if (gl_LocalInvocationIndex == 0) p.values.at[written + group] = value == 0x12345678 ? 0 : p.stage + 1;
  chain_end(uint64_t(p.chain));
}
