// Reductions over a group, in an order that depends only on the shape of the group. All threads call them,
// and all get the result. The build defines GROUP; the pipeline must have that many threads, and full
// subgroups. Shared memory: 2 * GROUP bytes.
#ifndef GRETA_VULKAN_REDUCE_H
#define GRETA_VULKAN_REDUCE_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/vulkan/lanes.h"

shared uvec2 reduce_partials[GROUP / 4];  // one for each subgroup, of at least 4 lanes

// Leaves the subgroup's partial result in shared memory.
void reduce_publish(uvec2 partial) {
  barrier();  // all threads have read those of the reduction before
  if (gl_SubgroupInvocationID == 0) reduce_partials[gl_SubgroupID] = partial;
  barrier();
}

float group_sum(float value) {
  reduce_publish(uvec2(floatBitsToUint(lanes_sum(value)), 0));
  float sum = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) sum += uintBitsToFloat(reduce_partials[i].x);
  return sum;
}

uint group_max(uint value) {
  reduce_publish(uvec2(subgroupMax(value), 0));
  uint maximum = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) maximum = max(maximum, reduce_partials[i].x);
  return maximum;
}

uint group_min(uint value) {
  reduce_publish(uvec2(subgroupMin(value), 0));
  uint minimum = ~0u;
  for (uint i = 0; i < gl_NumSubgroups; ++i) minimum = min(minimum, reduce_partials[i].x);
  return minimum;
}

// The largest key, and the lowest index that has it.
uvec2 group_best(uint key, uint index) {
  const uint maximum = subgroupMax(key);
  reduce_publish(uvec2(maximum, subgroupMin(key == maximum ? index : ~0u)));
  uvec2 best = reduce_partials[0];
  for (uint i = 1; i < gl_NumSubgroups; ++i) {
    const uvec2 partial = reduce_partials[i];
    if (partial.x > best.x || (partial.x == best.x && partial.y < best.y)) best = partial;
  }
  return best;
}

// The sum of two 64-bit numbers, each {low word, high word}.
uvec2 add_words(uvec2 a, uvec2 b) {
  uint carry;
  const uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}

// The sum over the threads before this one; `total` is the sum over all.
uint64_t group_sum_before(uint64_t value, out uint64_t total) {
  uvec2 sum = unpackUint2x32(value);
  for (uint d = 1; d < gl_SubgroupSize; d *= 2) {
    const bool adds = gl_SubgroupInvocationID >= d;
    const uint from = adds ? gl_SubgroupInvocationID - d : 0;
    const uvec2 before = uvec2(subgroupShuffle(sum.x, from), subgroupShuffle(sum.y, from));
    sum = add_words(sum, adds ? before : uvec2(0));
  }
  barrier();
  if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) reduce_partials[gl_SubgroupID] = sum;
  barrier();
  uvec2 all = uvec2(0), before = uvec2(0);
  for (uint i = 0; i < gl_NumSubgroups; ++i) {
    before = i == gl_SubgroupID ? all : before;
    all = add_words(all, reduce_partials[i]);
  }
  total = packUint2x32(all);
  return packUint2x32(add_words(before, sum)) - value;
}

uint64_t group_sum(uint64_t value) {
  uint64_t total;
  group_sum_before(value, total);
  return total;
}
#endif
