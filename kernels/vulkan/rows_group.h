// How a group makes the sums of its kGroupResults results of a row in the form q8x16: each subgroup kStreams rows of
// weights at a time, that share the values of x which its lanes hold, over its part of the columns.
#ifndef GRETA_VULKAN_ROWS_GROUP_H
#define GRETA_VULKAN_ROWS_GROUP_H
#include "kernels/vulkan/rows_results.h"
#include "kernels/vulkan/rows_sums.h"

uint64_t row_of_x() { return uint64_t(p.x) + gl_WorkGroupID.x * q8x16_row_bytes(kDepth); }

// The sums of these rows over the columns of slice `slice`; w is their first unit, if it is held.
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

// What a subgroup loads before x is there: the first unit of its first rows.
void hold(out uint64_t rows[kStreams], out Weights w[kStreams]) {
  if (!kHolds) return;
  rows_from(gl_SubgroupID / kSlices * kOfStreams, rows);
  load_unit(rows, min(gl_SubgroupID % kSlices * kLanes + gl_SubgroupInvocationID, kUnits - 1), w);
}

// All sums of the group, from what hold() gave; a barrier before sums_of_slices().
void make_all(uint64_t rows[kStreams], Weights w[kStreams]) {
  const uint slice = gl_SubgroupID % kSlices;
  uint first = gl_SubgroupID / kSlices * kOfStreams;
  if (kHolds) {
    if (first < kGroupResults) make(rows, w, true, first, slice);
    first += kSets * kOfStreams;
  }
  for (; first < kGroupResults; first += kSets * kOfStreams) {
    rows_from(first, rows);
    make(rows, w, false, first, slice);
  }
}

#endif
