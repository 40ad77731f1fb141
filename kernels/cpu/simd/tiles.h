// The frame of the prefill kernels (matmul_tiles): many tokens. A worker unpacks kPanelRows rows of W
// into a panel in its scratch, then takes a block of tokens through it, a tile at a time. The block's
// x, for the columns of a panel, stays in a second-level cache of 1 MB beside the panel: 2048 x 2048
// Q4_K with 512 tokens at once ran at 290 Gop/s, in blocks of 192 at 680 (VNNI peak 1085).
//
// `Tiles` is how a type multiplies:
//   kBlockTokens                           tokens of a block
//   kPanelDepth, kUnit                     columns of a panel, and what they are a multiple of
//   panel_bytes(columns)                   scratch for a panel of that many columns
//   x_bytes(depth)                         bytes from one row of x to the next
//   unpack(b, part, panel)                 the weights of `part` into the panel; what rows past n hold
//                                          has no effect
//   multiply(b, part, panel, tile)         y += the panel times x of the tile's tokens
// Every output is summed by itself in one order, so the bits do not depend on tiles or threads.
#pragma once
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

constexpr uint32_t kTileTokens = 6;
constexpr uint32_t kPanelRows = 32;

// Part of y: rows `first` .. of W, `rows` of them, and columns k .. k + columns - 1.
struct Part {
  uint32_t first, rows, k, columns;
};

// Tokens first .. of the step; rows of x in the form that the kernel row asks for.
struct TokenTile {
  uint32_t first, count;
  const uint8_t* x[kTileTokens];
  const uint8_t* next[kTileTokens];  // of the tile that follows, to prefetch
};

template <class Tiles>
inline void find_tokens(const MatmulBlock& b, const StepState* step, uint32_t live, uint32_t first,
                        const uint8_t** x) {
  for (uint32_t t = 0; t < kTileTokens; ++t) {  // the last token stands in for those that are not there
    const uint32_t token = source_row(step, b.rows_of, first + t < live ? first + t : live - 1);
    x[t] = (const uint8_t*)b.x + token * Tiles::x_bytes(b.depth);
  }
}

template <class Tiles>
void multiply_panel(const MatmulBlock& b, const StepState* step, uint32_t begin, uint32_t end,
                    const Part& part, const uint8_t* panel) {
  for (uint32_t first = begin; first < end; first += kTileTokens) {
    TokenTile tile;
    tile.first = first;
    tile.count = end - first < kTileTokens ? end - first : kTileTokens;
    find_tokens<Tiles>(b, step, end, first, tile.x);
    find_tokens<Tiles>(b, step, end, first + kTileTokens, tile.next);
    Tiles::multiply(b, part, panel, tile);
  }
}

// To rows first .. end - 1 of y for tokens t .. t_end - 1, whose sums are complete.
inline void add_bias(const MatmulBlock& b, uint32_t first, uint32_t end, uint32_t t, uint32_t t_end) {
  if (!b.bias) return;
  const float* bias = (const float*)b.bias;
  for (; t < t_end; ++t) {
    float* y = (float*)b.y + uint64_t(t) * b.n;
    for (uint32_t n = first; n < end; ++n) y[n] += bias[n];
  }
}

template <class Tiles>
void matmul_tiles(const MatmulBlock& b, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  uint32_t columns = Tiles::kPanelDepth;
  while (columns > Tiles::kUnit && Tiles::panel_bytes(columns) > scratch->bytes) columns -= Tiles::kUnit;
  if (Tiles::panel_bytes(columns) > scratch->bytes) return;
  const uint64_t all = uint64_t(first_group + group_count) * b.tile;
  const uint32_t end = all < b.n ? uint32_t(all) : b.n;
  for (uint32_t t = 0; t < live; t += Tiles::kBlockTokens) {
    const uint32_t t_end = live - t < Tiles::kBlockTokens ? live : t + Tiles::kBlockTokens;
    for (uint32_t k = 0; k < b.depth; k += columns)
      for (uint32_t first = first_group * b.tile; first < end; first += kPanelRows) {
        const Part part = {first, end - first < kPanelRows ? end - first : kPanelRows, k,
                           b.depth - k < columns ? b.depth - k : columns};
        Tiles::unpack(b, part, scratch->data);
        multiply_panel<Tiles>(b, step, t, t_end, part, scratch->data);
      }
    add_bias(b, first_group * b.tile, end, t, t_end);
  }
}

}  // namespace
