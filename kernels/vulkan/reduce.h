// Reductions over a group, in an order that only the shape of the group fixes. All threads call them, and all get
// the result. GROUP must be what the pipeline is made with, and subgroups full.
#ifndef GRETA_VULKAN_REDUCE_H
#define GRETA_VULKAN_REDUCE_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

shared uvec2 reduce_parts[GROUP / 4];  // one for each subgroup, of at least 4 lanes

void reduce_publish(uvec2 part) {
  barrier();  // of the reduction before
  if (gl_SubgroupInvocationID == 0) reduce_parts[gl_SubgroupID] = part;
  barrier();
}

float group_sum(float value) {
  reduce_publish(uvec2(floatBitsToUint(subgroupAdd(value)), 0));
  float sum = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) sum += uintBitsToFloat(reduce_parts[i].x);
  return sum;
}

uint group_max(uint value) {
  reduce_publish(uvec2(subgroupMax(value), 0));
  uint most = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) most = max(most, reduce_parts[i].x);
  return most;
}

uint group_min(uint value) {
  reduce_publish(uvec2(subgroupMin(value), 0));
  uint least = ~0u;
  for (uint i = 0; i < gl_NumSubgroups; ++i) least = min(least, reduce_parts[i].x);
  return least;
}

// The largest key with the lowest index that has it.
uvec2 group_best(uint key, uint index) {
  const uint most = subgroupMax(key);
  reduce_publish(uvec2(most, subgroupMin(key == most ? index : ~0u)));
  uvec2 best = reduce_parts[0];
  for (uint i = 1; i < gl_NumSubgroups; ++i) {
    const uvec2 part = reduce_parts[i];
    if (part.x > best.x || (part.x == best.x && part.y < best.y)) best = part;
  }
  return best;
}

uint64_t shuffled(uint64_t value, uint lane) {
  const uvec2 words = unpackUint2x32(value);
  return packUint2x32(uvec2(subgroupShuffle(words.x, lane), subgroupShuffle(words.y, lane)));
}

// The sum over the threads before this one; `total`: over all.
uint64_t group_sum_before(uint64_t value, out uint64_t total) {
  uint64_t sum = value;
  for (uint d = 1; d < gl_SubgroupSize; d *= 2) {
    const uint64_t before = shuffled(sum, gl_SubgroupInvocationID >= d ? gl_SubgroupInvocationID - d : 0);
    if (gl_SubgroupInvocationID >= d) sum += before;
  }
  barrier();
  if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) reduce_parts[gl_SubgroupID] = unpackUint2x32(sum);
  barrier();
  total = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) {
    if (i == gl_SubgroupID) sum += total;
    total += packUint2x32(reduce_parts[i]);
  }
  return sum - value;
}

uint64_t group_sum(uint64_t value) {
  uint64_t total;
  group_sum_before(value, total);
  return total;
}
#endif
