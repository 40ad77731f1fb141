// matmul_expert_rows: the decode product with the experts of a few tokens, alone or of a gate.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias, or activation(W . x + bias) * (W2 . x +
//   bias2)
//   A slot is one of the `used` experts of a token; W [experts][n][depth], x in the format q8x16.
//   grid    (n / kGroupResults, slots of all tokens)
//   group   the 16 sums or pairs of sums as in matmul_rows (group.h, sums_int8.h), with the weights of the
//           slot's expert
//   shared  64 to 128 bytes of partial sums for each slice of the columns, 128 bytes of results, the tables
//           of dot/<type>.h
//   moves   the weights of each slot's expert once; 1.75 bytes of x a value for each group, from the caches;
//           4 bytes of y, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulExpertRowBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/elementwise/activation.h"

layout(push_constant, scalar) uniform Push { MatmulExpertRowBlock p; CHAIN_BEHIND; };

layout(constant_id = 3) const uint kPairing = kPairingNone;
const bool kGates = kPairing == kPairingGate;
const uint kSums = kGates ? 2 : 1;  // sums of a result
const uint kTokens = 1;

#include "kernels/vulkan/matvec/sums_int8.h"  // needs kSums

uint matrix;  // the matrix of the slot's expert, among those that the launch has
uint first_result() { return gl_WorkGroupID.x * kGroupResults; }
uint result_count() { return p.n; }
uint64_t weights_of(uint result, bool second) {
  const uint64_t weight = second && kGates ? uint64_t(p.weight2) : uint64_t(p.weight);
  return weight + uint64_t(matrix * p.n + result) * quant_row_bytes(kDepth);
}

// Where a slot's values of x and their scales begin.
struct Source {
  uint64_t quants, scales;
};

Source source_of(uint slot) {
  const uint width = p.x_slots * p.x_stride, at = p.x_slots == 1 ? 0 : slot % p.used * p.x_stride;
  const uint64_t row = uint64_t(p.x) + uint64_t(slot / p.used) * q8x16_row_bytes(width);
  return Source(row + at, row + q8x16_scales_at(width) + at / 16 * 8);
}

// Makes results first .. first + kSubgroupResults - 1 of the group over slice `slice` of the columns.
void multiply_slot(Source x, uint first, uint slice) {
  const uint lane = gl_SubgroupInvocationID;
  uint64_t rows[kSubgroupRows];
  find_rows(first, rows);
  float sums[kSubgroupRows];
  [[unroll]] for (uint i = 0; i < kSubgroupRows; ++i) sums[i] = 0;
  for (uint unit = slice * kLanes + lane; unit < kUnits; unit += kSlices * kLanes)
    add_unit(rows, unit, x.quants, x.scales, sums);
  leave_sums(sums, slice, 0, first);
}

vec2 normed_sums(uint i) {
  const vec2 sums = sums_of_result(i);
  return p.epsilon >= 0 ? sums * norm_factor(0, kSubgroups, kDepth, p.epsilon) : sums;
}

void multiply_group() {
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
  float square_sum = 0;
  if (p.epsilon >= 0) square_sum = squares_of_thread(x.quants, gl_SubgroupID);
  dot_begin();
  for (uint set = gl_SubgroupID / kSlices; set * kSubgroupResults < kGroupResults; set += kSetsAtOnce)
    multiply_slot(x, set * kSubgroupResults, gl_SubgroupID % kSlices);
  if (p.epsilon >= 0) publish_squares(square_sum, gl_SubgroupID);
  barrier();
  if (finishes) {
    const vec2 sums = normed_sums(i) + bias;
    const float y = kGates ? gated(p.activation, sums.x, sums.y) : sums.x;
    p.y.at[slot * p.y_stride + row] = y;
    made[i] = vec2(y);
  }
  if (uint64_t(p.rounded) == 0) return;
  barrier();
  if (i >= kStoringThreads) return;
  const uint width = p.used * p.n, group = slot % p.used * (p.n / 16) + gl_WorkGroupID.x;
  store_made(uint64_t(p.rounded) + uint64_t(slot / p.used) * q8x16_row_bytes(width), width, group);
}

void main() {
  chain_wait(chain);
  multiply_group();
  chain_end(chain);
}
