// route_matmul: the router's product of a few tokens, with the norm before it, and the choice of experts.
//   logits[t][e] = logit_bias[e] + sum over k of W[e][k] * norm(x[t])[k]
//     where W [experts][depth] and x [tokens][depth] float32; then route
//   grid    (experts, tokens)
//   group   GROUP threads make one logit; a token's last group chooses its experts (experts/route.h)
//   shared  8 bytes for each subgroup; the arrays of experts/route.h
//   moves   W once; W for further tokens, x and gain from the caches; then the bytes of route_plain
// The argument block is RouteMatmulBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/step.h"
#extension GL_KHR_shader_subgroup_basic : require

layout(push_constant, scalar) uniform Push { RouteMatmulBlock p; CHAIN_BEHIND; };

#include "kernels/vulkan/experts/route.h"  // needs p

GRETA_ABI_BUFFER(vec4, vec4, 16)

layout(constant_id = 2) const uint kDepth = 256;
const uint kFours = kDepth / 4;

shared vec2 subgroup_sums[GROUP / kLanes];  // the sum of products, and that of squares of x

// Leaves the sums of each subgroup in shared memory.
void add_products(uint t, uint expert) {
  vec4_address x = vec4_address(uint64_t(p.x) + t * kDepth * 4), gain = vec4_address(uint64_t(p.gain));
  vec4_address weight = vec4_address(uint64_t(p.weight) + uint64_t(expert) * kDepth * 4);
  vec2 sums = vec2(0);
  [[unroll]] for (uint first = 0; first < kFours; first += GROUP) {
    const uint i = min(first + gl_LocalInvocationIndex, kFours - 1);
    const vec4 value = first + gl_LocalInvocationIndex < kFours ? x.at[i] : vec4(0);
    sums += vec2(dot(weight.at[i], uint64_t(p.gain) != 0 ? value * gain.at[i] : value), dot(value, value));
  }
  const vec2 of_lanes = vec2(lanes_sum(sums.x), lanes_sum(sums.y));
  if (gl_SubgroupInvocationID == 0) subgroup_sums[gl_SubgroupID] = of_lanes;
}

float logit(uint expert) {
  vec2 sums = vec2(0);
  [[unroll]] for (uint i = 0; i < GROUP / kLanes; ++i) sums += subgroup_sums[i];
  if (uint64_t(p.gain) != 0) sums.x *= inversesqrt(sums.y / float(kDepth) + p.epsilon);
  return uint64_t(p.logit_bias) != 0 ? sums.x + p.logit_bias.at[expert] : sums.x;
}

void make_logit() {
  const uint expert = gl_WorkGroupID.x, t = gl_WorkGroupID.y;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  add_products(t, expert);
  barrier();
  if (gl_LocalInvocationIndex == 0) p.logits.at[t * p.experts + expert] = logit(expert);
  if (is_last_group(p.counters, kCounterCount - 1 - t, gl_NumWorkGroups.x)) route(t);
}

void main() {
  chain_wait(chain);
  make_logit();
  chain_end(chain);
}
