// The sums of a wave's rows where weights and x are floats, with the norm before the product.
#pragma once
#include "kernels/hip/matvec/group.h"

// A row of x, and the gain of the norm that is taken first; 0: none.
struct RowOfX {
  uint64_t at, gain;
};

// Values 8 unit .. 8 unit + 7 of the row at the address `row`.
DEVICE Values values_of(uint64_t row, uint unit) {
  return {load<vec4>(row + unit * 32), load<vec4>(row + unit * 32 + 16)};
}

// Adds the products of four rows, whose first unit is loaded, over the lane's units. Returns the lane's sum
// of the squares of x, where a norm is taken.
DEVICE float add_products(Rows& rows, const RowOfX& x, uint units, const Share& share,
                          float (&sums)[kWaveRows]) {
  const uint step = unit_step(share);
  float square_sum = 0;
#pragma clang loop unroll(disable)
  for (uint first = first_unit(share); first < units;) {
    const uint unit = opaque(first);
    Values values = values_of(x.at, unit);
    if (x.gain) {
      const Values gain = values_of(x.gain, unit);
      square_sum += dot(values.x0, values.x0) + dot(values.x1, values.x1);
      values = {values.x0 * gain.x0, values.x1 * gain.x1};
    }
    loads_first();
#pragma unroll
    for (uint i = 0; i < kWaveRows; ++i) sums[i] += dot_unit(rows.w[i], values);
    sums_first(sums);
    first += step;
    if (first < units) load_unit(rows, unit + step);
  }
  return square_sum;
}

// Makes all partial sums of the group. `rows` is the wave's first set, begun; a barrier follows.
template <class Source>
DEVICE void make_sums(Rows& rows, const Source& source, const Share& share, uint first, uint count,
                      const RowOfX& x, uint units) {
  for (uint set = first_set(share);;) {
    float sums[kWaveRows] = {};
    const float square_sum = add_products(rows, x, units, share, sums);
    publish_sums(sums, share, set);
    if (x.gain && set == 0) publish_squares(square_sum, share.slice);
    set += share.waves;
    if (set >= share.sets) return;
    rows = begin_rows(source, share, first, count, set, units);
  }
}
