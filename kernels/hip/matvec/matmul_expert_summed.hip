// matmul_expert_summed: the decode product with a token's experts, and the weighted sum of what they make.
//   y[t][n] = residual[t][n] + sum over slots j of weights[t][j] * (sum over k of W[expert][n][k] *
//   x[t][j][k] + bias)
//   W [experts][n][depth], x [tokens][used][depth] in the format q8x16
//   grid    (n / kGroupResults, tokens)
//   group   p.threads threads, as in matmul_rows (group.h, sums_int8.h). The columns of all slots, one slot
//           after the other, are shared among lanes and slices as the columns of one row are there
//   shared  20 bytes for each wave (group.h), 128 bytes of results, 8 bytes for each of kMaxExperts slots,
//           the tables of gpu/dot/<type>.h
//   moves   the weights of each token's experts once; 1.75 bytes of x a value for each group, from the
//           caches; 4 bytes of y, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulExpertSumBlock in kernels/abi/ops.h.
#include "kernels/hip/matvec/sums_int8.h"

// Of each slot: its expert, and what it is multiplied by.
SHARED_ARRAY(uint, expert_of, kMaxExperts, 0);
SHARED_ARRAY(float, factor_of, kMaxExperts, END_OF(expert_of));

// A unit of the columns of all slots.
struct SlotUnit {
  uint slot, unit;
};

DEVICE SlotUnit moved(SlotUnit at, uint step, uint units) {
  for (at.unit += step; at.unit >= units; at.unit -= units) ++at.slot;
  return at;
}

// Makes set `set` of the group's results over the wave's slice of the columns of all slots.
DEVICE void multiply_slots(const MatmulExpertSumBlock& p, const Share& share, uint64_t row_bytes, uint set) {
  const uint units = p.depth / 32, first = group_x() * kGroupResults + set * share.results;
  const uint64_t x_row = (uint64_t)p.x + uint64_t(group_y()) * q8x16_row_bytes(p.used * p.depth);
  const RowOfX x = row_of_x(x_row, p.used * p.depth);
  float sums[kWaveRows] = {};
#pragma clang loop unroll(disable)
  for (SlotUnit at = moved({0, 0}, first_unit(share), units); at.slot < p.used;
       at = moved(at, unit_step(share), units)) {
    const uint64_t matrix = (uint64_t)p.weight + uint64_t(expert_of[at.slot] * p.n) * row_bytes;
    Rows rows;
#pragma unroll
    for (uint i = 0; i < kWaveRows; ++i) rows.at[i] = matrix + min(first + i, p.n - 1) * row_bytes;
    load_unit(rows, at.unit);
    const Values values =
        values_of(at.unit, {x.quants + at.slot * p.depth, x.scales + at.slot * (p.depth / 2)});
    loads_first();
#pragma unroll
    for (uint i = 0; i < kWaveRows; ++i)
      sums[i] = fma(factor_of[at.slot], dot_unit(rows.w[i], lane() % 8, values), sums[i]);
  }
  publish_sums(sums, share, set);
}

KERNEL_OF(GROUP, kMostThreads) void KERNEL_NAME(MatmulExpertSumBlock p) {
  const uint t = group_y(), i = thread_x(), row = group_x() * kGroupResults + i;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  for (uint j = i; j < p.used; j += p.threads) {
    expert_of[j] = min(p.ids[t * p.used + j], p.experts - 1);
    factor_of[j] = p.weights[t * p.used + j];
  }
  dot_begin();
  group_barrier();
  const bool finishes = i < kGroupResults && row < p.n;
  float added = 0, gain = 1;  // the residual and all biases
  if (finishes) {
    if (p.residual) added = p.residual[t * p.n + row];
    if (p.gain) gain = p.gain[row];
    if (p.bias)
      for (uint j = 0; j < p.used; ++j) added = fma(factor_of[j], p.bias[expert_of[j] * p.n + row], added);
  }
  const Share share = share_of(p.threads, 1);
  for (uint set = first_set(share); set < share.sets; set += share.waves)
    multiply_slots(p, share, quant_row_bytes(p.depth), set);
  group_barrier();
  if (finishes) {
    const float y = sums_of_result(share, i).x + added;
    p.y[t * p.n + row] = y;
    made[i] = vec2(y * gain, y);
  }
  if (!p.rounded) return;
  group_barrier();
  if (i >= kStoringThreads) return;
  store_made((uint64_t)p.rounded + uint64_t(t) * q8x16_row_bytes(p.n), p.n, group_x());
}
