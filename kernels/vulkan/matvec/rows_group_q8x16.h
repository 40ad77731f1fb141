// The sums of a group where x is a row in the form q8x16.
#ifndef GRETA_VULKAN_ROWS_GROUP_Q8X16_H
#define GRETA_VULKAN_ROWS_GROUP_Q8X16_H
#include "kernels/vulkan/matvec/rows_group.h"
#include "kernels/vulkan/matvec/rows_sums.h"

uint64_t row_of_x() { return uint64_t(p.x) + gl_WorkGroupID.x * q8x16_row_bytes(kDepth); }

void make(uint64_t rows[kStreams], Weights w[kStreams], bool held, uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  float sums[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  const uint64_t x = row_of_x(), scales = x + q8x16_scales_at(kDepth);
  uint unit = slice * kLanes + lane;
  if (held) {
    if (kUnits >= kSlices * kLanes || unit < kUnits) add_loaded(w, unit, x, scales, sums);
    unit += kSlices * kLanes;
  }
  for (; unit < kUnits; unit += kSlices * kLanes) add_unit(rows, unit, x, scales, sums);
  const float sum = sum_of_lanes(sums);
  if (lane < kStreams) parts[(slice * kGroupResults + first) * kSums + lane] = sum;
}

#endif
