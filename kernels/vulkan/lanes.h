// Reductions over a full subgroup by exchanges, every lane gets the result. One driver's subgroupAdd() and
// subgroupMax() look for lanes that are absent first, which takes as long as the sum.
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
