// The sums of a subgroup's rows where x is a row in the activation format q8x16, and the results in that
// format. Shared memory: 128 bytes for each token, the group's results.
#ifndef GRETA_VULKAN_MATVEC_SUMS_INT8_H
#define GRETA_VULKAN_MATVEC_SUMS_INT8_H
#include "kernels/vulkan/matvec/group.h"
#include "kernels/gpu/unit_int8.h"

uint64_t row_of_x();  // the kernel defines it: the address of the row of x of the group's first token

// The values of x that unit `unit` multiplies; `x` is the address of the row's int8 values, `scales` of its
// scales.
Values values_of(uint unit, uint64_t x, uint64_t scales) {
#ifdef DOT_GROUPS
  const uvec2 groups = dot_groups(unit);
  const vec4 both = vec4(vec2_address(scales).at[groups.x], vec2_address(scales).at[groups.y]);
#else
  const uvec2 groups = uvec2(2 * unit, 2 * unit + 1);
  const vec4 both = vec4_address(scales).at[unit];
#endif
  return Values(uvec4_address(x).at[groups.x], uvec4_address(x).at[groups.y], both.xy, both.zw);
}

// Adds the products of a loaded unit of 4 rows to their sums.
void add_loaded(Weights w[kSubgroupRows], uint unit, uint64_t x, uint64_t scales,
                inout float sums[kSubgroupRows]) {
  const Values values = values_of(unit, x, scales);
  if (kLoadsEarly) subgroupMemoryBarrierBuffer();
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] += dot_unit(w[i], unit, values);
}

// Loads a unit of 4 rows and adds its products.
void add_unit(uint64_t rows[kSubgroupRows], uint unit, uint64_t x, uint64_t scales,
              inout float sums[kSubgroupRows]) {
  Weights w[kSubgroupRows];
  load_unit(rows, unit, w);
  add_loaded(w, unit, x, scales, sums);
}

void multiply_for_token(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                        uint slice) {
  float sums[kSubgroupRows];
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = 0;
  const uint64_t x = row_of_x() + team() * q8x16_row_bytes(kDepth), scales = x + q8x16_scales_at(kDepth);
  uint unit = slice * kLanes + gl_SubgroupInvocationID;
  if (loaded) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, scales, sums);
    unit += kSlices * kLanes;
  }
  for (; unit < kUnits; unit += kSlices * kLanes) add_unit(rows, unit, x, scales, sums);
  leave_sums(sums, slice, team(), first);
}

struct Sums {
  float of[kSubgroupRows];
};

// The same for four tokens. `x` is the address of the first one's values.
void add_loaded_for_four(Weights w[kSubgroupRows], uint unit, uint64_t x, inout Sums sums[4]) {
  Values values[4];
  [[unroll]] for (uint t = 0; t < kTeamTokens; ++t) {
    const uint64_t of_token = x + t * q8x16_row_bytes(kDepth);
    values[t] = values_of(unit, of_token, of_token + q8x16_scales_at(kDepth));
  }
  if (kLoadsEarly) subgroupMemoryBarrierBuffer();
  [[unroll]] for (uint t = 0; t < kTeamTokens; ++t)
    [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[t].of[i] += dot_unit(w[i], unit, values[t]);
}

void multiply_for_four(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                       uint slice) {
  Sums sums[4];
  [[unroll]] for (uint t = 0; t < kTeamTokens; ++t)
    [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[t].of[i] = 0;
  const uint64_t x = row_of_x() + team() * 4 * q8x16_row_bytes(kDepth);
  uint unit = slice * kLanes + gl_SubgroupInvocationID;
  if (loaded) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded_for_four(w, unit, x, sums);
    unit += kSlices * kLanes;
  }
  for (; unit < kUnits; unit += kSlices * kLanes) {
    load_unit(rows, unit, w);
    add_loaded_for_four(w, unit, x, sums);
  }
  [[unroll]] for (uint t = 0; t < kTeamTokens; ++t) leave_sums(sums[t].of, slice, team() * 4 + t, first);
}

void multiply_rows(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                   uint slice) {
  if (kTeamTokens == 1)
    multiply_for_token(rows, w, loaded, first, slice);
  else
    multiply_for_four(rows, w, loaded, first, slice);
}

// A thread's share of the squares of x of a token, whose row is at the address `x`. `part` says which of the
// token's kSquaring subgroups it is in.
float squares_of_thread(uint64_t x, uint part) {
  float sum = 0;
  float_address groups = float_address(x + q8x16_squares_at(kDepth));
  for (uint i = part * kLanes + gl_SubgroupInvocationID; i < kDepth / 16; i += kSquaring * kLanes)
    sum += groups.at[i];
  return sum;
}

// Of each result: y times the gain of the norm that follows, and y.
shared vec2 made[kTokens * kGroupResults];

// Rounds the group's 16 results of a token to group `group` of 16 values of a row of `width`. The first
// kStoringThreads * kTokens threads call it, after a barrier behind the stores to `made`: kStoringThreads for
// each token.
const uint kStoringThreads = kGroupResults / 4;
void store_made(uint64_t row, uint width, uint group) {
  const uint quarter = gl_LocalInvocationIndex;
  vec4 values, unscaled;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    values[j] = made[quarter * 4 + j].x;
    unscaled[j] = made[quarter * 4 + j].y;
  }
  store_q8x16(row, width, group * kStoringThreads + quarter % kStoringThreads, values,
              dot(unscaled, unscaled));
}

#endif
