// Reductions over a full subgroup by exchanges between lanes; every lane gets the result. They replace
// subgroupAdd() and subgroupMax(), which on one driver look for absent lanes first, and so take twice as
// long.
#ifndef GRETA_VULKAN_LANES_H
#define GRETA_VULKAN_LANES_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "kernels/vulkan/device.h"

float lanes_sum(float value) {
  [[unroll]] for (uint d = 1; d < kLanes; d *= 2) value += subgroupShuffleXor(value, d);
  return value;
}

float lanes_max(float value) {
  [[unroll]] for (uint d = 1; d < kLanes; d *= 2) value = max(value, subgroupShuffleXor(value, d));
  return value;
}
#endif
