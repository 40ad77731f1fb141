// matmul of a few tokens, alone or with what is fused around it (MatmulRowBlock, kernels/abi/ops.h).
//   grid   (tokens; kGroupResults results to a group): groups that read the same weights follow each other
//   group  subgroups in a grid of kSets x kSlices: each makes kStreams rows of weights, that share the values of x which
//          its lanes hold, over its part of the columns; the first kGroupResults threads finish what all have summed
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulRowBlock p; };

#include "kernels/vulkan/rows_sums.h"
#include "kernels/vulkan/rows_y.h"

const uint kOfStreams = kStreams / kSums;  // results
const uint kNeeded = kGroupResults / kOfStreams;
const uint kSlices = kSubgroups > kNeeded ? kSubgroups / kNeeded : 1;
const uint kSets = kSubgroups / kSlices;

shared float parts[kSlices * kGroupResults * kSums];

uint64_t row_of_x() { return uint64_t(p.x) + gl_WorkGroupID.x * q8x16_row_bytes(kDepth); }

// The rows of weights of results first .. first + kOfStreams - 1 of the group.
void rows_from(uint first, out uint64_t rows[kStreams]) {
  const uint last = result_count() - 1;
  const uint64_t row_bytes = quant_row_bytes(kDepth);
  [[unroll]] for (uint i = 0; i < kStreams; ++i) {
    const uvec2 of = rows_of_result(min(gl_WorkGroupID.y * kGroupResults + first + i / kSums, last));
    const bool second = i % kSums == 1;
    rows[i] = (second && kGates ? uint64_t(p.weight2) : uint64_t(p.weight)) + (second ? of.y : of.x) * row_bytes;
  }
}

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

vec2 sums_of(uint i) {
  vec2 sums = vec2(0);
  [[unroll]] for (uint slice = 0; slice < kSlices; ++slice)
    [[unroll]] for (uint s = 0; s < kSums; ++s) sums[s] += parts[(slice * kGroupResults + i) * kSums + s];
  return p.epsilon >= 0 ? sums * norm_factor(p.epsilon) : sums;
}

void main() {
  const uint slice = gl_SubgroupID % kSlices;
  uint first = gl_SubgroupID / kSlices * kOfStreams;
  uint64_t rows_of_set[kStreams];
  Weights w[kStreams];
  if (kHolds) {
    rows_from(first, rows_of_set);
    load_unit(rows_of_set, min(slice * kLanes + gl_SubgroupInvocationID, kUnits - 1), w);
  }
  dot_begin();
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = gl_WorkGroupID.y * kGroupResults + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  Operands operands;
  if (finishes) operands = operands_of(result, rows);
  float squares = 0;
  if (p.epsilon >= 0) squares = squares_of_thread(row_of_x());
  if (kHolds) {
    if (first < kGroupResults) make(rows_of_set, w, true, first, slice);
    first += kSets * kOfStreams;
  }
  for (; first < kGroupResults; first += kSets * kOfStreams) {
    rows_from(first, rows_of_set);
    make(rows_of_set, w, false, first, slice);
  }
  if (p.epsilon >= 0) share_squares(squares);
  // Asked here, since NVIDIA's compiler finds the better order of the products then. A step has a token.
  const bool live = gl_WorkGroupID.x == 0 || gl_WorkGroupID.x < step_of(p.step).state.token_count;
  barrier();
  if (finishes && live) {
    const float y = finish(rows, sums_of(i), operands);
    made[i] = vec2(y * operands.gain, y);
  }
  if (uint64_t(p.rounded) != 0) {
    barrier();
    if (live && i < kStoring)
      store_made(uint64_t(p.rounded) + uint64_t(gl_WorkGroupID.x) * q8x16_row_bytes(p.n), p.n, gl_WorkGroupID.y);
  }
  chain_end(uint64_t(p.chain));
}
