// The GEMM of many tokens with experts, with matrix instructions (matrix.h).
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]     x float16
//   grid    (tiles of slots, tiles of kRows rows of all experts)
//   group   GROUP threads make a tile of the slots that chose an expert (tile.h), and then further tiles of
//           the same expert and rows (slots.h)
//   shared  128 bytes for each row and each token of a tile; 4 bytes for each token and each wave; the tables
//           of gpu/quant/<type>.h
//   moves   the weights of an expert once for each tile of its slots, x once for each tile of rows; y; the
//           ids once for each group
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#pragma once
#include "kernels/hip/gemm/slots.h"

namespace {
template <class T>
DEVICE void begin_slots(T& t, const ARGUMENT MatmulExpertBlock& p, const Expert& expert) {
  find_slots(p, expert, t.first_token);
  const uint64_t weight = uint64_t(p.weight) + uint64_t(expert.matrix * p.n) * quant_row_bytes(p.depth);
  begin_tile(t, weight, p.n, p.depth, [&](uint token) {
    const uint slot = slots[min(token, t.live - t.first_token - 1)];
    return uint64_t(p.x) + uint64_t(p.x_slots == 1 ? slot / p.used : slot) * p.x_stride * 2;
  });
}

template <class T>
DEVICE void store_slots(T& t, const ARGUMENT MatmulExpertBlock& p, const Expert& expert) {
  for_each_sum(t, [&](uint token, uint row, float sum) {
    if (token >= t.live || row >= p.n) return;
    if (p.bias) sum += p.bias[expert.id * p.n + row];
    p.y[uint64_t(slots[token - t.first_token]) * p.y_stride + row] = sum;
  });
}

// The block is loaded anew where it is read, so that its fields take no registers beside the products.
template <class T>
DEVICE void make_tiles() {
  const auto& p = reloaded_block<MatmulExpertBlock>();
  const uint row_tiles = (p.n + kRows - 1) / kRows;
  const Expert expert = find_expert(p, group_y() / row_tiles);
  T t;
  t.first_row = group_y() % row_tiles * kRows;
  t.live = expert.slot_count;
  t.first_token = group_x() * T::kTokens;
  if (t.first_token >= t.live) return;
  quant_begin();
  for (; t.first_token < t.live; t.first_token += group_count_x() * T::kTokens) {
    begin_slots(t, reloaded_block<MatmulExpertBlock>(), expert);
    const uint depth = reloaded_block<MatmulExpertBlock>().depth;
    multiply_columns(t, depth, 0, depth);
    store_slots(t, reloaded_block<MatmulExpertBlock>(), expert);
  }
}
}  // namespace
