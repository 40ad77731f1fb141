// The sums of a subgroup's rows where x is a row in the activation format q8x16, and the results in that
// format. Shared memory: 128 bytes, the group's results.
#ifndef GRETA_VULKAN_MATVEC_SUMS_INT8_H
#define GRETA_VULKAN_MATVEC_SUMS_INT8_H
#include "kernels/vulkan/matvec/group.h"
#include "kernels/gpu/unit_int8.h"

uint64_t row_of_x();  // the kernel defines it: the address of the group's row of x

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

void multiply_rows(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                   uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  float sums[kSubgroupRows];
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = 0;
  const uint64_t x = row_of_x(), scales = x + q8x16_scales_at(kDepth);
  uint unit = slice * kLanes + lane;
  if (loaded) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, scales, sums);
    unit += kSlices * kLanes;
  }
  for (; unit < kUnits; unit += kSlices * kLanes) add_unit(rows, unit, x, scales, sums);
  const float sum = sum_of_lanes(sums);
  if (lane < kSubgroupRows) partial_sums[(slice * kGroupResults + first) * kSums + lane] = sum;
}

// A thread's share of the squares of x, for publish_squares(). It is loaded before the products and used
// after them.
float squares_of_thread(uint64_t x) {
  float sum = 0;
  float_address groups = float_address(x + q8x16_squares_at(kDepth));
  for (uint i = gl_SubgroupID * kLanes + gl_SubgroupInvocationID; i < kDepth / 16; i += kThreads)
    sum += groups.at[i];
  return sum;
}

shared vec2 made[kGroupResults];  // of each result: y times the gain of the norm that follows, and y

// Rounds the group's 16 results to group `group` of 16 values of a row of `width`. The first kStoringThreads
// threads call it, after a barrier behind the stores to `made`.
const uint kStoringThreads = kGroupResults / 4;
void store_made(uint64_t row, uint width, uint group) {
  const uint quarter = gl_LocalInvocationIndex;
  vec4 values, unscaled;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    values[j] = made[quarter * 4 + j].x;
    unscaled[j] = made[quarter * 4 + j].y;
  }
  store_q8x16(row, width, group * kStoringThreads + quarter, values, dot(unscaled, unscaled));
}

#endif
