// The tiles of a GEMM with experts. A slot is one of the `used` experts of a token. Group (i, j) makes one
// tile of rows of one expert: j counts the row tiles of the first expert, then those of the next. It makes
// them for slots i * kTokens .. of those that chose the expert, and then for those that lie
// gl_NumWorkGroups.x tiles further. Each group finds these slots itself, in their order; each of its
// subgroups looks through a range of the ids.
//
// The kernel defines TILE_BLOCK as MatmulExpertBlock (tile.h).
#ifndef GRETA_VULKAN_GEMM_SLOTS_H
#define GRETA_VULKAN_GEMM_SLOTS_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "kernels/vulkan/gemm/tile.h"

shared uint slots[kTokens];  // the slots of the tile
shared uint subgroup_slots[kThreads / kLanes];  // how many slots each subgroup has found

uint expert, first_row, live;  // live: slots of all live tokens
// Among the slots that chose the expert: the tile's first, and how many there are.
uint first_slot, slot_count;

uint x_row(uint token) {
  const uint slot = slots[min(token, slot_count - first_slot - 1)];
  return (p.x_slots == 1 ? slot / p.used : slot) * (p.x_stride / 8);
}

// Which of slots 4 i .. 4 i + 3 chose the expert. A bucket has at least 16 tokens, so the ids are whole words
// of 16 bytes.
bvec4 chosen(uint i) {
  const uvec4 ids = i * 4 < live ? uvec4_address(uint64_t(p.ids)).at[i] : uvec4(~0u);
  return bvec4(ids.x == expert, ids.y == expert && i * 4 + 1 < live, ids.z == expert && i * 4 + 2 < live,
               ids.w == expert && i * 4 + 3 < live);
}

uint count_of(bvec4 which) { return uint(which.x) + uint(which.y) + uint(which.z) + uint(which.w); }

// How many words of 4 ids a subgroup looks through: a multiple of its lanes.
uint words_of_subgroup() {
  const uint words = (live + 3) / 4, each = (words + kThreads / kLanes - 1) / (kThreads / kLanes);
  return (each + kLanes - 1) / kLanes * kLanes;
}

// Sets slot_count.
void count_slots() {
  const uint words = words_of_subgroup(), begin = gl_SubgroupID * words;
  uint count = 0;
  for (uint i = begin + gl_SubgroupInvocationID; i < begin + words; i += kLanes) count += count_of(chosen(i));
  count = subgroupAdd(count);
  if (gl_SubgroupInvocationID == 0) subgroup_slots[gl_SubgroupID] = count;
  barrier();
  slot_count = 0;
  [[unroll]] for (uint i = 0; i < kThreads / kLanes; ++i) slot_count += subgroup_slots[i];
}

// Fills `slots` with the slots that chose the expert, from the first_slot-th on.
void find_slots() {
  const uint words = words_of_subgroup(), begin = gl_SubgroupID * words;
  uint before = 0;
  [[unroll]] for (uint i = 0; i < kThreads / kLanes; ++i) before += i < gl_SubgroupID ? subgroup_slots[i] : 0;
  for (uint i = begin; i < begin + words; i += kLanes) {
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

// Returns false where the group has no slot that chose the expert.
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
  barrier();  // all threads have stored the tile before, for which they read `slots`
  if (uint64_t(p.ids) != 0) find_slots();
  else for (uint i = gl_LocalInvocationIndex; i < kTokens; i += kThreads)
    slots[i] = (first_slot + i) * p.used + expert;
  barrier();
  begin_weights(uint64_t(p.weight) + uint64_t((expert - p.first) * p.n) * quant_row_bytes(p.depth),
                first_row);
  begin_x();
}

void store_y(uint token, uint row, float sum) {
  const uint n = first_row + row;
  if (first_slot + token >= slot_count || n >= p.n) return;
  if (uint64_t(p.bias) != 0) sum += p.bias.at[expert * p.n + n];
  p.y.at[slots[token] * p.y_stride + n] = sum;
}
#endif
