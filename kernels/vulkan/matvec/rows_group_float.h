// The sums of a group where weights and x are floats. The kernel that includes it says
//   row_of_x()   the address of the row of x
//   kNorms       whether a norm is before the product: then the squares of x are shared too (rows_factor.h)
//   gain_of_x()  the address of that norm's gain
#ifndef GRETA_VULKAN_ROWS_GROUP_FLOAT_H
#define GRETA_VULKAN_ROWS_GROUP_FLOAT_H
#include "kernels/vulkan/matvec/rows_factor.h"
#include "kernels/vulkan/matvec/rows_group.h"

Values values_of(uint64_t row, uint unit) {
  const uint64_t at = row + unit * 32;
  return Values(uintBitsToFloat(load_16_of_16(at)), uintBitsToFloat(load_16_of_16(at + 16)));
}

// Adds the products of a unit of kStreams rows of weights to their sums, and the squares of x to theirs.
void add_loaded(Weights w[kStreams], uint unit, uint64_t x, inout float sums[kStreams], inout float of_squares) {
  Values values = values_of(x, unit), gain;
  if (kNorms) gain = values_of(gain_of_x(), unit);
  if (kHolds) subgroupMemoryBarrierBuffer();
  if (kNorms) {
    of_squares += dot(values.x0, values.x0) + dot(values.x1, values.x1);
    values = Values(values.x0 * gain.x0, values.x1 * gain.x1);
  }
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] += dot_unit(w[i], values);
}

void make(uint64_t rows[kStreams], Weights w[kStreams], bool held, uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  const uint64_t x = row_of_x();
  float sums[kStreams], of_squares = 0;
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  uint unit = slice * kLanes + lane;
  if (held) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, sums, of_squares);
    unit += kSlices * kLanes;
  }
#ifdef DOT_LARGE
  [[dont_unroll]]
#endif
  for (; unit < kUnits; unit += kSlices * kLanes) {
    load_unit(rows, unit, w);
    add_loaded(w, unit, x, sums, of_squares);
  }
  const float sum = sum_of_lanes(sums);
  if (lane < kStreams) parts[(slice * kGroupResults + first) * kSums + lane] = sum;
  if (kNorms && first == 0) share_squares(of_squares, slice);
}

#endif
