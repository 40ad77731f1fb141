// The sums of a wave's rows where x is a row in the activation format q8x16, and the results in that format.
// Shared memory: 128 bytes, the group's results.
#pragma once
#include "kernels/hip/matvec/group.h"

// Where a row of x has its int8 values and its scales.
struct RowOfX {
  uint64_t quants, scales;
};

SHARED vec2 made[kGroupResults];  // of each result: y times the gain of the norm that follows, and y

DEVICE RowOfX row_of_x(uint64_t row, uint depth) { return {row, row + q8x16_scales_at(depth)}; }

// The values of x that unit `unit` multiplies.
DEVICE Values values_of(uint unit, const RowOfX& x) {
#ifdef DOT_GROUPS
  const uvec2 groups = dot_groups(unit);
  const vec2 scale0 = load<vec2>(x.scales + groups.x * 8), scale1 = load<vec2>(x.scales + groups.y * 8);
  return {load<uvec4>(x.quants + groups.x * 16), load<uvec4>(x.quants + groups.y * 16), scale0, scale1};
#else
  const vec4 scales = load<vec4>(x.scales + unit * 16);
  return {load<uvec4>(x.quants + unit * 32), load<uvec4>(x.quants + unit * 32 + 16), scales.xy, scales.zw};
#endif
}

// Adds the products of four rows, whose first unit is loaded, over the lane's units.
DEVICE void add_products(Rows& rows, const RowOfX& x, uint units, const Share& share,
                         float (&sums)[kWaveRows]) {
  const uint step = unit_step(share);
#pragma clang loop unroll(disable)
  for (uint first = first_unit(share); first < units;) {
    const uint unit = opaque(first);
    const Values values = values_of(unit, x);
    loads_first();
    // What dot_unit() asks of a unit is its place in a block, which is the same for all units of a lane.
#pragma unroll
    for (uint i = 0; i < kWaveRows; ++i) sums[i] += dot_unit(rows.w[i], lane() % 8, values);
    sums_first(sums);
    first += step;
    if (first < units) load_unit(rows, unit + step);
  }
}

// Makes all partial sums of the group. `rows` is the wave's first set, begun; a barrier follows.
template <class Source>
DEVICE void make_sums(Rows& rows, const Source& source, const Share& share, uint first, uint count,
                      const RowOfX& x, uint units) {
  for (uint set = first_set(share);;) {
    float sums[kWaveRows] = {};
    add_products(rows, x, units, share, sums);
    publish_sums(sums, share, set);
    set += share.waves;
    if (set >= share.sets) return;
    rows = begin_rows(source, share, first, count, set, units);
  }
}

// A thread's share of the squares of x, for publish_squares().
DEVICE float squares_of_thread(uint64_t x, uint depth, uint threads) {
  float sum = 0;
  for (uint i = thread_x(); i < depth / 16; i += threads)
    sum += load<float>(x + q8x16_squares_at(depth) + i * 4);
  return sum;
}

// Rounds the group's 16 results to group `group` of 16 values of a row of `width`. The first kStoringThreads
// threads call it, after a barrier behind the stores to `made`.
constexpr uint kStoringThreads = kGroupResults / 4;
DEVICE void store_made(uint64_t row, uint width, uint group) {
  const uint quarter = thread_x();
  vec4 values, unscaled;
#pragma unroll
  for (uint j = 0; j < 4; ++j) {
    values[j] = made[quarter * 4 + j].x;
    unscaled[j] = made[quarter * 4 + j].y;
  }
  store_q8x16(row, width, group * kStoringThreads + quarter, values, dot(unscaled, unscaled));
}
