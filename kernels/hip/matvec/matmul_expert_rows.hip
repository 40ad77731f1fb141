// matmul_expert_rows: the decode product with the experts of a few tokens, alone or of a gate.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias, or activation(W . x + bias) * (W2 . x +
//   bias2)
//   A slot is one of the `used` experts of a token; W [experts][n][depth], x in the format q8x16.
//   grid    (n / kGroupResults, slots of all tokens)
//   group   the 16 sums or pairs of sums as in matmul_rows (group.h, sums_int8.h), with the weights of the
//           slot's expert
//   shared  20 bytes for each wave (group.h), 128 bytes of results, the tables of gpu/dot/<type>.h
//   moves   the weights of each slot's expert once; 1.75 bytes of x a value for each group, from the caches;
//           4 bytes of y, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulExpertRowBlock in kernels/abi/ops.h.
#include "kernels/hip/elementwise/activation.h"
#include "kernels/hip/matvec/sums_int8.h"

struct ExpertRows {
  const MatmulExpertRowBlock& p;
  uint matrix;  // of the slot's expert, among those that the launch has
  uint64_t row_bytes;
};
DEVICE uint64_t weights_of(const ExpertRows& source, uint result, bool second) {
  const MatmulExpertRowBlock& p = source.p;
  return (uint64_t)(second && p.pairing == kPairingGate ? p.weight2 : p.weight) +
         uint64_t(source.matrix * p.n + result) * source.row_bytes;
}

// Where the values of a slot begin: those of x that follow belong to other slots of the token.
DEVICE RowOfX row_of_slot(const MatmulExpertRowBlock& p, uint slot) {
  const uint width = p.x_slots * p.x_stride, at = p.x_slots == 1 ? 0 : slot % p.used * p.x_stride;
  const uint64_t row = (uint64_t)p.x + uint64_t(slot / p.used) * q8x16_row_bytes(width);
  return {row + at, row + q8x16_scales_at(width) + at / 16 * 8};
}

KERNEL(GROUP) void KERNEL_NAME(MatmulExpertRowBlock p) {
  const uint slot = group_y(), first = group_x() * kGroupResults, units = p.depth / 32;
  const uint i = thread_x(), row = first + i;
  const bool gates = p.pairing == kPairingGate, norms = p.epsilon >= 0;
  if (slot >= live_rows(step_of(p.step), kRowsTokens) * p.used) return;
  const uint expert = p.ids ? p.ids[slot] : slot % p.used;
  if (expert - p.first >= p.experts) return;
  const ExpertRows source = {p, expert - p.first, quant_row_bytes(p.depth)};
  const Share share = share_of(GROUP, gates ? 2 : 1);
  Rows rows = begin_rows(source, share, first, p.n, first_set(share), units);
  dot_begin();
  const bool finishes = i < kGroupResults && row < p.n;
  vec2 bias = vec2(0);
  if (finishes && p.bias) bias.x = p.bias[expert * p.n + row];
  if (finishes && gates && p.bias2) bias.y = p.bias2[expert * p.n + row];
  const RowOfX x = row_of_slot(p, slot);
  float square_sum = 0;
  if (norms) square_sum = squares_of_thread(x.quants, p.depth, GROUP);
  make_sums(rows, source, share, first, p.n, x, units);
  if (norms) publish_squares(square_sum, wave_index());
  group_barrier();
  if (finishes) {
    vec2 sums = sums_of_result(share, i);
    if (norms) sums *= norm_factor(share.waves, p.depth, p.epsilon);
    sums += bias;
    const float y = gates ? gated(p.activation, sums.x, sums.y) : sums.x;
    p.y[slot * p.y_stride + row] = y;
    made[i] = vec2(y);
  }
  if (!p.rounded) return;
  group_barrier();
  if (i >= kStoringThreads) return;
  const uint width = p.used * p.n, group = slot % p.used * (p.n / 16) + group_x();
  store_made((uint64_t)p.rounded + uint64_t(slot / p.used) * q8x16_row_bytes(width), width, group);
}
