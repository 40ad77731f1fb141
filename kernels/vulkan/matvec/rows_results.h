// Which rows of weights the subgroups of a group make for its kGroupResults results: kSets of them side by side, each over
// kSlices parts of the columns, whose sums meet in shared memory. The kernel that includes it says
//   kSums                        of a result, 1 or 2
//   first_result()               of the group, among those of a token
//   result_count()               of a token
//   weights_of(result, second)   the address of the row of weights that a sum of it is of
#ifndef GRETA_VULKAN_ROWS_RESULTS_H
#define GRETA_VULKAN_ROWS_RESULTS_H
#include "kernels/vulkan/matvec/rows_streams.h"

const uint kOfStreams = kStreams / kSums;  // results
const uint kNeeded = kGroupResults / kOfStreams;
const uint kSlices = kSubgroups > kNeeded ? kSubgroups / kNeeded : 1;
const uint kSets = kSubgroups / kSlices;

shared float parts[kSlices * kGroupResults * kSums];

// The rows of weights of results first .. first + kOfStreams - 1 of the group.
void rows_from(uint first, out uint64_t rows[kStreams]) {
  const uint last = result_count() - 1;
  [[unroll]] for (uint i = 0; i < kStreams; ++i)
    rows[i] = weights_of(min(first_result() + first + i / kSums, last), i % kSums == 1);
}

vec2 sums_of_slices(uint i) {
  vec2 sums = vec2(0);
  [[unroll]] for (uint slice = 0; slice < kSlices; ++slice)
    [[unroll]] for (uint s = 0; s < kSums; ++s) sums[s] += parts[(slice * kGroupResults + i) * kSums + s];
  return sums;
}

#endif
