// The GEMM of many tokens with matrix instructions (matrix.h), with split-K.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n] + residual[t][n]
//     where W [n][depth], x [tokens][depth] float16
//   grid    (tiles of p.tile_tokens tokens, tiles of kRows rows, ranges of the columns); on CDNA
//           (dies, tiles of a die, ranges of the columns), see choose_tile
//   group   GROUP threads make a tile of y over a range of the columns. They decode the weights to float16 on
//           their way to shared memory (tile.h), and multiply with sums in float32. The last group of a tile
//           adds the partial sums of the ranges (split_k.h)
//   shared  128 bytes for each row and each of kMostTokens tokens; the tables of gpu/quant/<type>.h
//   moves   the weights once for each tile of tokens, x once for each tile of rows; y, and the residual; with
//           several ranges 4 bytes for each value of y and range, written and read once
// The argument block is MatmulTileBlock in kernels/abi/ops.h.
#pragma once
#include "kernels/hip/gemm/split_k.h"
#include "kernels/hip/grid.h"

namespace {
// Chooses the tile of the group, and returns false if there is none for it.
//
// The dies of an MI300 take groups in turn, and each has a cache of its own. So there are as many groups
// along x as the device has dies, and those with the same x, which one die runs, make neighbouring tiles:
// first those of the same rows, which read the same weights. Groups past the last tile have nothing to do.
// Devices with one die have one group along y, and the same order.
template <class T>
DEVICE bool choose_tile(T& t, const MatmulTileBlock& p) {
  t.live = live_rows(step_of(p.step), p.rows_of);
  const uint row_tiles = (p.n + kRows - 1) / kRows;
  uint token_tile = group_x(), row_tile = group_y();
  t.index = token_tile * row_tiles + row_tile;
  if constexpr (kWave == 64) {
    const uint token_tiles = (t.live + T::kTokens - 1) / T::kTokens;
    if (!token_tiles) return false;
    t.index = group_x() * group_count_y() + group_y();
    token_tile = t.index % token_tiles;
    row_tile = t.index / token_tiles;
  }
  t.first_token = token_tile * T::kTokens;
  t.first_row = row_tile * kRows;
  return t.first_token < t.live && row_tile < row_tiles;
}

// The columns of the group. The compiler sees that the first is a multiple of kTileColumns.
struct Columns {
  uint begin, end;
};
DEVICE Columns columns_of_group(uint depth) {
  const uint blocks = (depth + kTileColumns - 1) / kTileColumns, ranges = range_count();
  const uint end = (group_z() + 1) * blocks / ranges * kTileColumns;
  return {group_z() * blocks / ranges * kTileColumns, min(end, depth)};
}

// Stores a tile, unless another group adds up its sums.
template <class T>
DEVICE void finish_tile(T& t, const MatmulTileBlock& p) {
  if (!is_finished(t, p)) return;
  for_each_sum(t, [&](uint token, uint row, float sum) {
    if (token >= t.live || row >= p.n) return;
    const uint64_t at = uint64_t(token) * p.n + row;
    if (p.bias) sum += p.bias[row];
    if (p.residual) sum = p.residual[at] + sum;
    p.y[at] = sum;
  });
}

template <class T>
DEVICE void make_tile(const MatmulTileBlock& p) {
  T t;
  if (!choose_tile(t, p)) return;
  begin_tile(t, uint64_t(p.weight), p.n, p.depth, [&](uint token) {  // those past the last repeat it
    return uint64_t(p.x) + uint64_t(min(t.first_token + token, t.live - 1)) * p.depth * 2;
  });
  const Columns columns = columns_of_group(p.depth);
  multiply_columns(t, p.depth, columns.begin, columns.end);
  finish_tile(t, p);
}
}  // namespace
