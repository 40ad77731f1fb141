// A row in registers, so that a norm reads it once: a thread has every GROUP-th four of values, up to kHeld
// of them. What lies behind those is read again where it is wanted.
#ifndef GRETA_VULKAN_HELD_H
#define GRETA_VULKAN_HELD_H
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kHeld = 8;  // rows of 8 * GROUP fours, which is 8192 values for a group of 256
const uint kBehind = kHeld * GROUP;

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

// The thread's fours of a row of `count` that begins at four `from`; 0 behind its end. No load stands behind
// a branch, so that all are under way together.
void hold(float_address x, uint from, uint thread, uint count, out vec4 held[kHeld]) {
  [[unroll]] for (uint j = 0; j < kHeld; ++j) held[j] = four(x, from + min(thread + j * GROUP, count - 1));
  [[unroll]] for (uint j = 0; j < kHeld; ++j)
    if (thread + j * GROUP >= count) held[j] = vec4(0);
}
#endif
