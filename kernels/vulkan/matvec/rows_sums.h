// What the decode kernels share: the products of a subgroup with a row of the form q8x16, and the factor of the norm
// before it.
#ifndef GRETA_VULKAN_ROWS_SUMS_H
#define GRETA_VULKAN_ROWS_SUMS_H
#include "kernels/vulkan/matvec/rows.h"
#include "kernels/vulkan/matvec/rows_factor.h"
#include "kernels/vulkan/matvec/rows_streams.h"

shared vec2 made[kGroupResults];  // y times the gain, and y

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

// Adds the products of a unit of kStreams rows of weights to their sums; quants of x at `x`, their scales at `scales`.
void add_loaded(Weights w[kStreams], uint unit, uint64_t x, uint64_t scales, inout float sums[kStreams]) {
  const Values values = values_of(unit, x, scales);
  if (kHolds) subgroupMemoryBarrierBuffer();
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] += dot_unit(w[i], unit, values);
}

void add_unit(uint64_t rows[kStreams], uint unit, uint64_t x, uint64_t scales, inout float sums[kStreams]) {
  Weights w[kStreams];
  load_unit(rows, unit, w);
  add_loaded(w, unit, x, scales, sums);
}

// What a thread has of the sums of squares of x, fetched before the products and used after them (share_squares()).
float squares_of_thread(uint64_t x) {
  float sum = 0;
  float_address of = float_address(x + q8x16_squares_at(kDepth));
  for (uint i = gl_SubgroupID * kLanes + gl_SubgroupInvocationID; i < kDepth / 16; i += kThreads) sum += of.at[i];
  return sum;
}

// What the group has made, rounded, as block `block` of a row of n values; by the first threads, kStoring, after a barrier.
const uint kStoring = kGroupResults / 4;
void store_made(uint64_t row, uint n, uint block) {
  const uint quarter = gl_LocalInvocationIndex;
  vec4 values, unscaled;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    values[j] = made[quarter * 4 + j].x;
    unscaled[j] = made[quarter * 4 + j].y;
  }
  store_q8x16(row, n, block * kStoring + quarter, values, dot(unscaled, unscaled));
}

#endif
