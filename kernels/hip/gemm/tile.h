// What the tiled GEMM kernels share. A group makes a tile of y, kRows rows for some tokens, 64 columns at a
// time. For each such step it brings x, float16, and the weights, decoded to float16, to shared memory:
//   tile[token or row][kPitch], words of 8 values: first the weights, then x
// Word c of a row r lies at place c ^ r % 8, so that eight neighbouring rows have the same word in different
// banks. While the group multiplies a step, the values of the next are on their way into registers.
//
// The waves of a group stand in a grid, kAcross of them over the rows. The matrix instructions take x as A
// and the weights as B (matrix.h), so that the lanes of a wave store neighbouring rows of y.
//
// Before it includes this file the kernel defines kRows and kMostTokens, the most tokens of a tile.
#pragma once
#include "kernels/hip/gemm/weights.h"
#include "kernels/hip/group_ticket.h"
#include "kernels/hip/matrix.h"
#include "kernels/hip/step.h"

namespace {
constexpr uint kStep = 64, kPitch = kStep / 8, kWaves = GROUP / kWave;
SHARED uvec4 tile[(kRows + kMostTokens) * kPitch];

// A thread brings pieces of 32 weights and words of 8 values of x for each step.
constexpr uint kPiecesEach = kRows * 2 / GROUP;

constexpr uint place_of(uint row, uint word) { return row * kPitch + (word ^ row % 8); }

// A tile of kTokens tokens. A wave makes kTall x kWide matrices of it.
template <uint tokens, uint across>
struct Tile {
  static constexpr uint kTokens = tokens, kAcross = across, kDown = kWaves / kAcross;
  static constexpr uint kTall = kTokens / 16 / kDown, kWide = kRows / 16 / kAcross;
  static constexpr uint kWords = kTokens * kPitch, kWordsEach = (kWords + GROUP - 1) / GROUP;
  static_assert(kTall * kDown * 16 == kTokens && kWide * kAcross * 16 == kRows);

  uint index;                         // of the tile in the launch
  uint first_token, first_row, live;  // live: tokens of all tiles
  uint64_t piece_row[kPiecesEach];
  Piece pieces[kPiecesEach];
  uint64_t x_at[kWordsEach];
  uvec4 words[kWordsEach];
  Sums sums[kTall][kWide];
  uint wave_token, wave_row;  // the wave's first ones, in the tile
  uint x_place, w_place;      // where the lane's words of the wave's first fragments lie
};

// Begins the wave's part of a tile.
template <class T>
DEVICE void begin_wave(T& t) {
#pragma unroll
  for (uint i = 0; i < T::kTall; ++i)
#pragma unroll
    for (uint j = 0; j < T::kWide; ++j) t.sums[i][j] = Sums{};
  t.wave_token = wave_index() / T::kAcross * T::kTall * 16;
  t.wave_row = wave_index() % T::kAcross * T::kWide * 16;
  t.w_place = place_of(t.wave_row + lane() % 16, first_word());
  t.x_place = place_of(kRows + t.wave_token + lane() % 16, first_word());
}

// Begins a tile from t.first_row on of the n rows at `weight`. x_row(token) is the address of x of a token of
// the tile. Rows past the last repeat it; their results are not stored.
template <class T, class RowOf>
DEVICE void begin_tile(T& t, uint64_t weight, uint n, uint depth, const RowOf& x_row) {
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) {
    const uint row = min(t.first_row + row_of(i * GROUP + thread_x()), n - 1);
    t.piece_row[i] = weight + row * quant_row_bytes(depth);
    t.pieces[i] = {};
  }
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    const uint word = i * GROUP + thread_x();
    t.x_at[i] = x_row(word / kPitch) + word % kPitch * 16;
  }
  begin_wave(t);
}

// Loads what the group multiplies in the step from `column` on.
template <class T>
DEVICE void load_step(T& t, uint depth, uint column) {
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i)
    load_piece(t.pieces[i], t.piece_row[i], depth, column, side_of(i * GROUP + thread_x()));
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    const uint word = i * GROUP + thread_x();
    const bool there = (T::kWords % GROUP == 0 || word < T::kWords) && column + word % kPitch * 8 < depth;
    t.words[i] = there ? load<uvec4>(t.x_at[i] + column * 2) : uvec4(0);
  }
}

// Stores it to shared memory.
template <class T>
DEVICE void store_step(T& t, uint column) {
#pragma unroll
  for (uint i = 0; i < kPiecesEach; ++i) {
    const uint piece = i * GROUP + thread_x(), side = side_of(piece);
    uvec4 chunks[4];
#pragma unroll
    for (uint chunk = 0; chunk < 4; ++chunk)
      chunks[chunk] = chunk_of(t.pieces[i], column, side, chunk, false);
    if (__builtin_expect(may_overflow(t.pieces[i]), 0))
#pragma unroll
      for (uint chunk = 0; chunk < 4; ++chunk) chunks[chunk] = saturated(chunks[chunk]);
#pragma unroll
    for (uint chunk = 0; chunk < 4; ++chunk)
      tile[place_of(row_of(piece), chunk_unit(side, chunk) * 4 + chunk_word(side, chunk))] = chunks[chunk];
  }
#pragma unroll
  for (uint i = 0; i < T::kWordsEach; ++i) {
    const uint word = i * GROUP + thread_x();
    if (T::kWords % GROUP == 0 || word < T::kWords)
      tile[place_of(kRows + word / kPitch, word % kPitch)] = t.words[i];
  }
}

// Fragment i of those that begin at a place, from word `word` of its rows on: a multiple of a fragment's
// words.
DEVICE Fragment load_fragment(uint place, uint i, uint word) {
  Fragment fragment;
#pragma unroll
  for (uint k = 0; k < kFragmentWords; ++k) fragment.words[k] = tile[(place ^ (word + k)) + i * 16 * kPitch];
  return fragment;
}

// Multiplies what lies in shared memory and adds it to the sums.
template <class T>
DEVICE void multiply_step(T& t) {
#pragma unroll
  for (uint word = 0; word < kPitch; word += kFragmentColumns / 8) {
    Fragment w[T::kWide];
#pragma unroll
    for (uint j = 0; j < T::kWide; ++j) w[j] = load_fragment(t.w_place, j, word);
#pragma unroll
    for (uint i = 0; i < T::kTall; ++i) {
      const Fragment x = load_fragment(t.x_place, i, word);
#pragma unroll
      for (uint j = 0; j < T::kWide; ++j) t.sums[i][j] = multiply(x, w[j], t.sums[i][j]);
    }
  }
}

// Multiplies columns begin .. end - 1. `begin` is a multiple of kTileColumns, and `end` too or the depth.
template <class T>
DEVICE void multiply_columns(T& t, uint depth, uint begin, uint end) {
  load_step(t, depth, begin);
#pragma clang loop unroll(disable)
  for (uint column = begin; column < end; column += kStep) {
    group_barrier();  // all waves have multiplied what is replaced now
    store_step(t, column);
    group_barrier();
    if (column + kStep < end) load_step(t, depth, column + kStep);
    multiply_step(t);
  }
}

// Calls take(token, row, sum) for each of the lane's sums, with its place in y.
template <class T, class Take>
DEVICE void for_each_sum(T& t, const Take& take) {
  const uint token = t.first_token + t.wave_token, row = t.first_row + t.wave_row + lane() % 16;
#pragma unroll
  for (uint i = 0; i < T::kTall; ++i)
#pragma unroll
    for (uint j = 0; j < T::kWide; ++j)
#pragma unroll
      for (uint r = 0; r < kLayout.results; ++r)
        take(token + i * 16 + kLayout.row_of_result(lane(), r), row + j * 16, t.sums[i][j][r]);
}
}  // namespace
