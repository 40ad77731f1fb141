// matmul_expert_summed: the decode product with a token's experts, and the weighted sum of what they make.
//   y[t][n] = residual[t][n] + sum over slots j of weights[t][j] * (sum over k of W[expert][n][k] *
//   x[t][j][k] + bias)
//   W [experts][n][depth], x [tokens][used][depth] in the format q8x16
//   grid    (n / kGroupResults, tokens)
//   group   p.threads threads, as in matmul_rows (group.h, sums_int8.h). The columns of all slots, one slot
//           after the other, are shared among lanes and slices as the columns of one row are there
//   shared  64 bytes of partial sums for each slice, 128 bytes of results, 8 bytes a slot, the tables of
//           dot/<type>.h
//   moves   the weights of each token's experts once; 1.75 bytes of x a value for each group, from the
//           caches; 4 bytes of y, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulExpertSumBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulExpertSumBlock p; CHAIN_BEHIND; };

const uint kSums = 1, kTokens = 1;  // sums of a result, tokens of a group

#include "kernels/vulkan/matvec/sums_int8.h"  // needs kSums

layout(constant_id = 3) const uint kUsed = 1;  // slots of a token

shared uint experts[kUsed];
shared float factors[kUsed];  // what each slot is multiplied by

uint64_t matrix;  // address of the matrix of a slot's expert
uint first_result() { return gl_WorkGroupID.x * kGroupResults; }
uint result_count() { return p.n; }
uint64_t weights_of(uint result, bool) { return matrix + result * quant_row_bytes(kDepth); }

// Makes results first .. first + kSubgroupRows - 1 of the group over slice `slice` of the columns of all
// slots.
void multiply_slots(uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  const uint64_t x = uint64_t(p.x) + uint64_t(gl_WorkGroupID.y) * q8x16_row_bytes(kUsed * kDepth);
  const uint64_t scales = x + q8x16_scales_at(kUsed * kDepth);
  float sums[kSubgroupRows];
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = 0;
  for (uint at = slice * kLanes + lane; at < kUsed * kUnits; at += kSlices * kLanes) {
    const uint slot = at / kUnits;
    matrix = uint64_t(p.weight) + uint64_t(experts[slot] * p.n) * quant_row_bytes(kDepth);
    uint64_t rows[kSubgroupRows];
    find_rows(first, rows);
    float slot_sums[kSubgroupRows];
    [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) slot_sums[i] = 0;
    add_unit(rows, at % kUnits, x + slot * kDepth, scales + slot * (kDepth / 16 * 8), slot_sums);
    [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = fma(factors[slot], slot_sums[i], sums[i]);
  }
  leave_sums(sums, slice, 0, first);
}

void multiply_group() {
  const uint t = gl_WorkGroupID.y, i = gl_LocalInvocationIndex, row = first_result() + i;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  for (uint j = i; j < kUsed; j += kThreads) {
    experts[j] = min(p.ids.at[t * kUsed + j], p.experts - 1);
    factors[j] = p.weights.at[t * kUsed + j];
  }
  dot_begin();
  barrier();
  const bool finishes = i < kGroupResults && row < p.n;
  float added = 0, gain = 1;  // the residual and all biases
  if (finishes) {
    if (uint64_t(p.residual) != 0) added = p.residual.at[t * p.n + row];
    if (uint64_t(p.gain) != 0) gain = p.gain.at[row];
    if (uint64_t(p.bias) != 0)
      for (uint j = 0; j < kUsed; ++j) added = fma(factors[j], p.bias.at[experts[j] * p.n + row], added);
  }
  for (uint set = gl_SubgroupID / kSlices; set * kSubgroupRows < kGroupResults; set += kSetsAtOnce)
    multiply_slots(set * kSubgroupRows, gl_SubgroupID % kSlices);
  barrier();
  if (finishes) {
    const float y = sums_of_result(i).x + added;
    p.y.at[t * p.n + row] = y;
    made[i] = vec2(y * gain, y);
  }
  if (uint64_t(p.rounded) == 0) return;
  barrier();
  if (i >= kStoringThreads) return;
  store_made(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.n), p.n, gl_WorkGroupID.x);
}

void main() {
  chain_wait(chain);
  multiply_group();
  chain_end(chain);
}
