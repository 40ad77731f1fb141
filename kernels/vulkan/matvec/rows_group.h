// How a group makes the sums of its kGroupResults results: each subgroup kStreams rows of weights at a time, that share the
// values of x which its lanes hold, over its part of the columns (make(), of rows_group_q8x16.h or rows_group_float.h).
#ifndef GRETA_VULKAN_ROWS_GROUP_H
#define GRETA_VULKAN_ROWS_GROUP_H
#include "kernels/vulkan/matvec/rows_results.h"

// Leaves the sums of these rows over the columns of slice `slice` in `parts`; w is their first unit, if it is held.
void make(uint64_t rows[kStreams], Weights w[kStreams], bool held, uint first, uint slice);

// What a subgroup loads before x is there: the first unit of its first rows,
void load_held(uint64_t rows[kStreams], out Weights w[kStreams]) {
  if (kHolds) load_unit(rows, min(gl_SubgroupID % kSlices * kLanes + gl_SubgroupInvocationID, kUnits - 1), w);
}

// which are these.
void hold(out uint64_t rows[kStreams], out Weights w[kStreams]) {
  if (!kHolds) return;
  rows_from(gl_SubgroupID / kSlices * kOfStreams, rows);
  load_held(rows, w);
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
