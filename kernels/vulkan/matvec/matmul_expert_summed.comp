// matmul_expert and combine of one token or a few, x in the form q8x16 (MatmulExpertSumBlock, kernels/abi/ops.h).
//   grid   (kGroupResults values of y to a group, tokens)
//   group  as in matmul_rows; the columns of all slots, one after the other, are those of a row
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulExpertSumBlock p; };

#include "kernels/vulkan/matvec/rows_sums.h"

layout(constant_id = 3) const uint kUsed = 1;

shared uint experts[kUsed];
shared float factors[kUsed];  // what each slot is multiplied by

uint64_t matrix;  // of a slot's expert
const uint kSums = 1;
uint first_result() { return gl_WorkGroupID.x * kGroupResults; }
uint result_count() { return p.n; }
uint64_t weights_of(uint result, bool) { return matrix + result * quant_row_bytes(kDepth); }

#include "kernels/vulkan/matvec/rows_results.h"

// Values first .. first + kStreams - 1 of the group, over the columns of slice `slice`.
void make(uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  const uint64_t x = uint64_t(p.x) + uint64_t(gl_WorkGroupID.y) * q8x16_row_bytes(kUsed * kDepth);
  const uint64_t scales = x + q8x16_scales_at(kUsed * kDepth);
  float sums[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = 0;
  for (uint at = slice * kLanes + lane; at < kUsed * kUnits; at += kSlices * kLanes) {
    const uint slot = at / kUnits;
    matrix = uint64_t(p.weight) + uint64_t(experts[slot] * p.n) * quant_row_bytes(kDepth);
    uint64_t rows[kStreams];
    rows_from(first, rows);
    float of_slot[kStreams];
    [[unroll]] for (uint i = 0; i < kStreams; ++i) of_slot[i] = 0;
    add_unit(rows, at % kUnits, x + slot * kDepth, scales + slot * (kDepth / 16 * 8), of_slot);
    [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] = fma(factors[slot], of_slot[i], sums[i]);
  }
  const float sum = sum_of_lanes(sums);
  if (lane < kStreams) parts[slice * kGroupResults + first + lane] = sum;
}

void main() {
  const uint t = gl_WorkGroupID.y, i = gl_LocalInvocationIndex, row = first_result() + i;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  for (uint j = i; j < kUsed; j += kThreads) {
    experts[j] = min(p.ids.at[t * kUsed + j], p.experts - 1);
    factors[j] = p.weights.at[t * kUsed + j];
  }
  dot_begin();
  barrier();
  const bool finishes = i < kGroupResults && row < p.n;
  float added = 0, gain = 1;
  if (finishes) {
    if (uint64_t(p.residual) != 0) added = p.residual.at[t * p.n + row];
    if (uint64_t(p.gain) != 0) gain = p.gain.at[row];
    if (uint64_t(p.bias) != 0)
      for (uint j = 0; j < kUsed; ++j) added = fma(factors[j], p.bias.at[experts[j] * p.n + row], added);
  }
  for (uint set = gl_SubgroupID / kSlices; set * kStreams < kGroupResults; set += kSets)
    make(set * kStreams, gl_SubgroupID % kSlices);
  barrier();
  if (finishes) {
    const float y = sums_of_slices(i).x + added;
    p.y.at[t * p.n + row] = y;
    made[i] = vec2(y * gain, y);
  }
  if (uint64_t(p.rounded) == 0) return;
  barrier();
  if (i >= kStoring) return;
  store_made(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.n), p.n, gl_WorkGroupID.x);
}
