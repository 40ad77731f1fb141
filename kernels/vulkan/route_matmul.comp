// route_matmul: the router's matmul of one token, with the norm before it, and the choice of experts, which the last group
// makes that has finished its logits (RouteMatmulBlock, kernels/abi/ops.h).
//   grid   (tiles of logits)
//   group  a subgroup makes a logit at a time
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/step.h"
#extension GL_KHR_shader_subgroup_basic : require

layout(push_constant, scalar) uniform Push { RouteMatmulBlock p; };

#include "kernels/vulkan/route.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

layout(constant_id = 2) const uint kDepth = 256;

float logit(uint expert) {
  vec4_address x = vec4_address(uint64_t(p.x)), gain = vec4_address(uint64_t(p.gain));
  vec4_address weight = vec4_address(uint64_t(p.weight) + uint64_t(expert) * kDepth * 4);
  float sum = 0, square = 0;
  for (uint i = gl_SubgroupInvocationID; i < kDepth / 4; i += kLanes) {
    const vec4 value = x.at[i];
    square += dot(value, value);
    sum += dot(weight.at[i], uint64_t(p.gain) != 0 ? value * gain.at[i] : value);
  }
  sum = lanes_sum(sum);
  if (uint64_t(p.gain) != 0) sum *= inversesqrt(lanes_sum(square) / float(kDepth) + p.epsilon);
  return uint64_t(p.logit_bias) != 0 ? sum + p.logit_bias.at[expert] : sum;
}

void main() {
  if (step_of(p.step).state.token_count == 0) return;
  const uint first = gl_WorkGroupID.x * p.tile;
  for (uint e = first + gl_SubgroupID; e < min(first + p.tile, p.experts); e += gl_NumSubgroups) {
    const float value = logit(e);
    if (gl_SubgroupInvocationID == 0) p.logits.at[e] = value;
  }
  if (is_last_group(p.counters, kCounterCount - 1, gl_NumWorkGroups.x)) route(0);
}
