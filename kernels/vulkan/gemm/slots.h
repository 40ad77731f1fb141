// The tiles of a product with experts: group (i, j) makes some rows of one expert, j counting these for expert after
// expert, for slots i * kTokens .. of those that chose it, then for those that stand gl_NumWorkGroups.x tiles further.
// Which slots these are each group finds itself, in their order: subgroups look through a part of the ids each.
#ifndef GRETA_VULKAN_GEMM_SLOTS_H
#define GRETA_VULKAN_GEMM_SLOTS_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#define TILE_BLOCK MatmulExpertBlock
#include "kernels/vulkan/gemm/tile.h"

shared uint slots[kTokens];  // of the tile
shared uint found[kThreads / kLanes];

uint expert, first_row, live;  // live: slots
uint first_slot, slot_count;   // of those that chose the expert: the tile's first, and how many there are

uint x_row(uint token) {
  const uint slot = slots[min(token, slot_count - first_slot - 1)];
  return (p.x_slots == 1 ? slot / p.used : slot) * (p.x_stride / 8);
}

// Which of slots 4 i .. 4 i + 3 chose the expert. Buckets of 16 tokens and more: ids are whole words of 16 bytes.
bvec4 chosen(uint i) {
  const uvec4 ids = i * 4 < live ? uvec4_address(uint64_t(p.ids)).at[i] : uvec4(~0u);
  return bvec4(ids.x == expert, ids.y == expert && i * 4 + 1 < live, ids.z == expert && i * 4 + 2 < live,
               ids.w == expert && i * 4 + 3 < live);
}

uint count_of(bvec4 which) { return uint(which.x) + uint(which.y) + uint(which.z) + uint(which.w); }

// Words of ids that a subgroup looks through, a multiple of its lanes.
uint words_each() {
  const uint words = (live + 3) / 4, each = (words + kThreads / kLanes - 1) / (kThreads / kLanes);
  return (each + kLanes - 1) / kLanes * kLanes;
}

void count_slots() {
  const uint each = words_each(), begin = gl_SubgroupID * each;
  uint count = 0;
  for (uint i = begin + gl_SubgroupInvocationID; i < begin + each; i += kLanes) count += count_of(chosen(i));
  count = subgroupAdd(count);
  if (gl_SubgroupInvocationID == 0) found[gl_SubgroupID] = count;
  barrier();
  slot_count = 0;
  [[unroll]] for (uint i = 0; i < kThreads / kLanes; ++i) slot_count += found[i];
}

// Fills `slots` from slot first_slot of the expert's on.
void find_slots() {
  const uint each = words_each(), begin = gl_SubgroupID * each;
  uint before = 0;
  [[unroll]] for (uint i = 0; i < kThreads / kLanes; ++i) before += i < gl_SubgroupID ? found[i] : 0;
  for (uint i = begin; i < begin + each; i += kLanes) {
    const uint word = i + gl_SubgroupInvocationID;
    const bvec4 which = chosen(word);
    const uint count = count_of(which);
    uint at = before + subgroupExclusiveAdd(count) - first_slot;
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (which[j] && at < kTokens) slots[at] = word * 4 + j;
      at += uint(which[j]);
    }
    before += subgroupAdd(count);
  }
}

// False: none of the group's slots chose the expert.
bool begin_expert() {
  const uint row_tiles = (p.n + kRows - 1) / kRows;
  expert = p.first + gl_WorkGroupID.y / row_tiles;
  first_row = gl_WorkGroupID.y % row_tiles * kRows;
  first_slot = gl_WorkGroupID.x * kTokens;
  live = live_rows(step_of(p.step), kRowsTokens) * p.used;
  if (uint64_t(p.ids) != 0) count_slots();
  else slot_count = live / p.used;
  return first_slot < slot_count;
}

void begin_tile() {
  barrier();  // all have stored what they read by `slots`
  if (uint64_t(p.ids) != 0) find_slots();
  else for (uint i = gl_LocalInvocationIndex; i < kTokens; i += kThreads) slots[i] = (first_slot + i) * p.used + expert;
  barrier();
  begin_weights(uint64_t(p.weight) + uint64_t((expert - p.first) * p.n) * quant_row_bytes(p.depth), first_row);
  begin_x();
}

void store_y(uint token, uint row, float sum) {
  const uint n = first_row + row;
  if (first_slot + token >= slot_count || n >= p.n) return;
  if (uint64_t(p.bias) != 0) sum += p.bias.at[expert * p.n + n];
  p.y.at[slots[token] * p.y_stride + n] = sum;
}
#endif
