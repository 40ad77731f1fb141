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

// Results first .. first + kOfStreams - 1 of the group, over the columns of slice `slice`.
void make(uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID, last = result_count() - 1;
  const uint64_t row_bytes = quant_row_bytes(kDepth);
  uint64_t rows[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) {
    const uvec2 of = rows_of_result(min(gl_WorkGroupID.y * kGroupResults + first + i / kSums, last));
    const bool second = i % kSums == 1;
    rows[i] = (second && kGates ? uint64_t(p.weight2) : uint64_t(p.weight)) + (second ? of.y : of.x) * row_bytes;
  }
  float sums[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  const uint64_t x = row_of_x(), scales = x + q8x16_scales_at(kDepth);
  for (uint unit = slice * kLanes + lane; unit < kUnits; unit += kSlices * kLanes) add_unit(rows, unit, x, scales, sums);
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
  const bool live = gl_WorkGroupID.x < step_of(p.step).state.token_count;
  const uint i = gl_LocalInvocationIndex, result = gl_WorkGroupID.y * kGroupResults + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  Operands operands;
  if (finishes) operands = operands_of(result, rows);
  if (p.epsilon >= 0) square_x(row_of_x());
  dot_begin();
  for (uint set = gl_SubgroupID / kSlices; set * kOfStreams < kGroupResults; set += kSets)
    make(set * kOfStreams, gl_SubgroupID % kSlices);
  barrier();
  if (!live) return;
  if (finishes) {
    const float y = finish(rows, sums_of(i), operands);
    made[i] = vec2(y * operands.gain, y);
  }
  if (uint64_t(p.rounded) == 0) return;
  barrier();
  if (i >= kStoring) return;
  store_made(uint64_t(p.rounded) + uint64_t(gl_WorkGroupID.x) * q8x16_row_bytes(p.n), p.n, gl_WorkGroupID.y);
}
