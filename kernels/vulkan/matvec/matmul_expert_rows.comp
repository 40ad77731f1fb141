// matmul_expert of one token or a few, x in the form q8x16 (MatmulExpertRowBlock, kernels/abi/ops.h).
//   grid   (kGroupResults results to a group, slots of tokens)
//   group  as in matmul_rows, with the weights of the slot's expert
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/elementwise/activation.h"

layout(push_constant, scalar) uniform Push { MatmulExpertRowBlock p; };

#include "kernels/vulkan/matvec/rows_sums.h"

layout(constant_id = 3) const uint kPairing = kPairingNone;
const bool kGates = kPairing == kPairingGate;
const uint kSums = kGates ? 2 : 1;  // of a result

uint matrix;  // of the slot's expert, among those that are here
uint first_result() { return gl_WorkGroupID.x * kGroupResults; }
uint result_count() { return p.n; }
uint64_t weights_of(uint result, bool second) {
  return (second && kGates ? uint64_t(p.weight2) : uint64_t(p.weight)) + uint64_t(matrix * p.n + result) * quant_row_bytes(kDepth);
}

#include "kernels/vulkan/matvec/rows_results.h"

// Where a slot's values begin.
struct Source {
  uint64_t quants, scales;
};

Source source_of(uint slot) {
  const uint width = p.x_slots * p.x_stride, at = p.x_slots == 1 ? 0 : slot % p.used * p.x_stride;
  const uint64_t row = uint64_t(p.x) + uint64_t(slot / p.used) * q8x16_row_bytes(width);
  return Source(row + at, row + q8x16_scales_at(width) + at / 16 * 8);
}

// Results first .. first + kOfStreams - 1 of the group, over the columns of slice `slice`.
void make(Source x, uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  uint64_t rows[kStreams];
  rows_from(first, rows);
  float sums[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  for (uint unit = slice * kLanes + lane; unit < kUnits; unit += kSlices * kLanes)
    add_unit(rows, unit, x.quants, x.scales, sums);
  const float sum = sum_of_lanes(sums);
  if (lane < kStreams) parts[(slice * kGroupResults + first) * kSums + lane] = sum;
}

vec2 sums_of(uint i) {
  const vec2 sums = sums_of_slices(i);
  return p.epsilon >= 0 ? sums * norm_factor(kSubgroups, kDepth, p.epsilon) : sums;
}

void main() {
  const uint slot = gl_WorkGroupID.y, i = gl_LocalInvocationIndex, row = first_result() + i;
  const bool live = slot < live_rows(step_of(p.step), kRowsTokens) * p.used;
  const uint expert = uint64_t(p.ids) != 0 ? p.ids.at[slot] : slot % p.used;
  if (!live || expert - p.first >= p.experts) return;
  matrix = expert - p.first;
  const bool finishes = i < kGroupResults && row < p.n;
  vec2 bias = vec2(0);
  if (finishes && uint64_t(p.bias) != 0) bias.x = p.bias.at[expert * p.n + row];
  if (finishes && kGates && uint64_t(p.bias2) != 0) bias.y = p.bias2.at[expert * p.n + row];
  const Source x = source_of(slot);
  float squares = 0;
  if (p.epsilon >= 0) squares = squares_of_thread(x.quants);
  dot_begin();
  for (uint set = gl_SubgroupID / kSlices; set * kOfStreams < kGroupResults; set += kSets)
    make(x, set * kOfStreams, gl_SubgroupID % kSlices);
  if (p.epsilon >= 0) share_squares(squares, gl_SubgroupID);
  barrier();
  if (finishes) {
    const vec2 sums = sums_of(i) + bias;
    const float y = kGates ? gated(p.activation, sums.x, sums.y) : sums.x;
    p.y.at[slot * p.y_stride + row] = y;
    made[i] = vec2(y);
  }
  if (uint64_t(p.rounded) == 0) return;
  barrier();
  if (i >= kStoring) return;
  const uint width = p.used * p.n, block = slot % p.used * (p.n / 16) + gl_WorkGroupID.x;
  store_made(uint64_t(p.rounded) + uint64_t(slot / p.used) * q8x16_row_bytes(width), width, block);
}
