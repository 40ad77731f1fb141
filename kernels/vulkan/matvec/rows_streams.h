// How the subgroups of a decode kernel take weights: kStreams rows at a time, a unit of each to a lane (dot/<type>.h).
#ifndef GRETA_VULKAN_ROWS_STREAMS_H
#define GRETA_VULKAN_ROWS_STREAMS_H
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/lanes.h"

layout(constant_id = 0) const uint kThreads = GROUP;

// All loads of a step are to be under way before the first product, and those of the first step before x is there. No load
// can sink below a barrier of memory; without one NVIDIA's compiler waits for each row in turn, to save registers. Others
// load early of themselves, and would hold more than they have.
const bool kHolds = kChained != 0;

const uint kStreams = 4;  // rows of weights that share the values of x which a subgroup's lanes hold
const uint kSubgroups = kThreads / kLanes;

void load_unit(uint64_t rows[kStreams], uint unit, out Weights w[kStreams]) {
  [[unroll]] for (uint i = 0; i < kStreams; ++i) w[i] = dot_load(rows[i], unit);
}

// The sums of kStreams rows over the lanes, that of row i in lane i: lanes trade rows for halves of the lanes first, which
// takes 6 shuffles of 32 lanes instead of 20.
float sum_of_lanes(float sums[kStreams]) {
  const bool odd = (gl_SubgroupInvocationID & 1) != 0, late = (gl_SubgroupInvocationID & 2) != 0;
  const float a = (odd ? sums[1] : sums[0]) + subgroupShuffleXor(odd ? sums[0] : sums[1], 1);
  const float b = (odd ? sums[3] : sums[2]) + subgroupShuffleXor(odd ? sums[2] : sums[3], 1);
  float sum = (late ? b : a) + subgroupShuffleXor(late ? a : b, 2);
  [[unroll]] for (uint lanes = 4; lanes < kLanes; lanes *= 2) sum += subgroupShuffleXor(sum, lanes);
  return sum;
}

#endif
