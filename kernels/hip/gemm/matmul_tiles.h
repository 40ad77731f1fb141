// The GEMM of many tokens with matrix instructions (matrix.h), with split-K.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n] + residual[t][n]
//     where W [n][depth], x [tokens][depth] float16
//   grid    (tiles of p.tile_tokens tokens, tiles of kRows rows, ranges of the columns)
//   group   GROUP threads make a tile of y over a range of the columns. They decode the weights to float16 on
//           their way to shared memory (tile.h), and multiply with sums in float32. The last group of a tile
//           adds the partial sums of the ranges (split_k.h)
//   shared  128 bytes for each row and each of kMostTokens tokens; the tables of gpu/quant/<type>.h
//   moves   the weights once for each tile of tokens, x once for each tile of rows; y, and the residual; with
//           several ranges 4 bytes for each value of y and range, written and read once
// The argument block is MatmulTileBlock in kernels/abi/ops.h.
#pragma once
#include "kernels/hip/gemm/split_k.h"

namespace {
template <class T>
DEVICE void make_tile(const MatmulTileBlock& p) {
  T t;
  t.live = live_rows(step_of(p.step), p.rows_of);
  t.first_token = group_x() * T::kTokens;
  t.first_row = group_y() * kRows;
  if (t.first_token >= t.live) return;
  begin_tile(t, uint64_t(p.weight), p.n, p.depth, [&](uint token) {  // those past the last repeat it
    return uint64_t(p.x) + uint64_t(min(t.first_token + token, t.live - 1)) * p.depth * 2;
  });
  const uint blocks = (p.depth + kTileColumns - 1) / kTileColumns, ranges = range_count();
  const uint end = (group_z() + 1) * blocks / ranges * kTileColumns;
  multiply_columns(t, p.depth, group_z() * blocks / ranges * kTileColumns, min(end, p.depth));
  if (!is_finished(t, p)) return;
  for_each_sum(t, [&](uint token, uint row, float sum) {
    if (token >= t.live || row >= p.n) return;
    const uint64_t at = uint64_t(token) * p.n + row;
    if (p.bias) sum += p.bias[row];
    if (p.residual) sum = p.residual[at] + sum;
    p.y[at] = sum;
  });
}
}  // namespace
