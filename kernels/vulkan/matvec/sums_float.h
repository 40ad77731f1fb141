// The sums of a subgroup's rows where weights and x are floats, with the norm before the product. The kernel
// defines kSums and the constant kNorms before it includes this file; kNorms: x is normalised first. kTokens
// is 1.
#ifndef GRETA_VULKAN_MATVEC_SUMS_FLOAT_H
#define GRETA_VULKAN_MATVEC_SUMS_FLOAT_H
#include "kernels/vulkan/matvec/group.h"
#include "kernels/gpu/unit_float.h"

// The kernel defines these.
uint64_t row_of_x();   // the address of the row of x, float32
uint64_t gain_of_x();  // the address of the norm's gain, float32

// Values 8 unit .. 8 unit + 7 of the row at the address `row`.
Values values_of(uint64_t row, uint unit) {
  const uint64_t at = row + unit * 32;
  return Values(uintBitsToFloat(load_16_of_16(at)), uintBitsToFloat(load_16_of_16(at + 16)));
}

// Adds the products of a loaded unit of 4 rows to their sums, and the squares of x to `square_sum`.
void add_loaded(Weights w[kSubgroupRows], uint unit, uint64_t x, inout float sums[kSubgroupRows],
                inout float square_sum) {
  Values values = values_of(x, unit), gain;
  if (kNorms) gain = values_of(gain_of_x(), unit);
  if (kLoadsEarly) subgroupMemoryBarrierBuffer();
  if (kNorms) {
    square_sum += dot(values.x0, values.x0) + dot(values.x1, values.x1);
    values = Values(values.x0 * gain.x0, values.x1 * gain.x1);
  }
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] += dot_unit(w[i], values);
}

void multiply_rows(uint64_t rows[kSubgroupRows], Weights w[kSubgroupRows], bool loaded, uint first,
                   uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  const uint64_t x = row_of_x();
  float sums[kSubgroupRows], square_sum = 0;
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = 0;
  uint unit = slice * kLanes + lane;
  if (loaded) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, sums, square_sum);
    unit += kSlices * kLanes;
  }
#ifdef DOT_LARGE
  [[dont_unroll]]
#endif
  for (; unit < kUnits; unit += kSlices * kLanes) {
    load_unit(rows, unit, w);
    add_loaded(w, unit, x, sums, square_sum);
  }
  leave_sums(sums, slice, 0, first);
  if (kNorms && first == 0) publish_squares(square_sum, slice);
}

#endif
