// What all parts of attention_split and its kin start from (split.h).
#ifndef GRETA_VULKAN_ATTENTION_SPLIT_BASICS_H
#define GRETA_VULKAN_ATTENTION_SPLIT_BASICS_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kSubgroups = GROUP / kLanes;
const float kNone = -3e38;  // below every score

// Which range of which token the group takes.
struct Share {
  uint t, split, splits;
  uint each;  // pages of a range
};
#endif
