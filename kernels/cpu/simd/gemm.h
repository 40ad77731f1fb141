// gemm on vector units: y[i] = alpha * A[i] . B[i] + beta * y[i], in float32 whatever the types.
//   grid    (n / tile_tokens, m / tile, matrices)
//   group   a tile of y. It takes kDepth columns of A at a time: A's rows in strips of Lanes::kRows, which
//           stand side by side for each column, and B's columns in strips of Lanes::kColumns. A strip of A
//           times one of B stays in registers, and is added to sums in the worker's memory
//   scratch the strips of A and B as float32, and the tile's sums
//   moves   a once for each tile of columns, b once for each tile of rows, y once; twice with beta
// Lanes is a type of vectors: kRows, kColumns, Vector, load, store, add, fma and spread.
#pragma once
#include "kernels/cpu/gemm/values.h"
#include "kernels/cpu/scratch.h"

namespace {

constexpr uint32_t kDepth = 256, kMostColumns = 512;

inline uint32_t rounded_up(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }

// `count` values that lie one after the other, as float32.
inline void read_values(uint64_t from, uint32_t type, uint64_t at, uint32_t count, float* __restrict to) {
  if (type == kGemmF32) {
    __builtin_memcpy(to, (const float*)from + at, count * sizeof(float));
  } else if (type == kGemmF16) {
    const uint8_t* const halves = (const uint8_t*)from + at * 2;
    for (uint32_t i = 0; i < count; ++i) to[i] = load_f16(halves + i * 2);
  } else {
    const uint8_t* const halves = (const uint8_t*)from + at * 2;
    for (uint32_t i = 0; i < count; ++i) to[i] = load_bf16(halves + i * 2);
  }
}

// An operand of a tile: `lines` rows of A or columns of B. The value of line l at column k of A is at
// `first` + l * line_step + k * k_step; one of the steps is 1.
struct Operand {
  uint64_t from;
  uint32_t type, lines;
  uint64_t first, line_step, k_step;
};

// Strips of kStrip lines: [lines / kStrip][depth][kStrip]. Lines that are not there are 0.
template <uint32_t kStrip>
inline void pack_strips(const Operand& o, uint64_t k, uint32_t depth, float* strips) {
  static_assert(kMostColumns >= kDepth);
  float values[kMostColumns];
  const uint32_t all = rounded_up(o.lines, kStrip);
  if (o.line_step == 1 && o.k_step != 1) {
    for (uint32_t i = 0; i < depth; ++i) {
      read_values(o.from, o.type, o.first + (k + i) * o.k_step, o.lines, values);
      for (uint32_t line = o.lines; line < all; ++line) values[line] = 0;
      for (uint32_t line = 0; line < all; line += kStrip)
        __builtin_memcpy(strips + uint64_t(line) * depth + i * kStrip, values + line, kStrip * sizeof(float));
    }
    return;
  }
  for (uint32_t line = 0; line < all; ++line) {
    float* const to = strips + uint64_t(line / kStrip) * kStrip * depth + line % kStrip;
    if (line < o.lines) read_values(o.from, o.type, o.first + line * o.line_step + k, depth, values);
    for (uint32_t i = 0; i < depth; ++i) to[i * kStrip] = line < o.lines ? values[i] : 0;
  }
}

// sums[kRows][kColumns], `stride` apart, += strip of A . strip of B. Those of the first columns are not read.
template <class Lanes>
inline void add_strips(const float* a, const float* b, uint32_t depth, bool first, float* sums,
                       uint32_t stride) {
  constexpr uint32_t kRows = Lanes::kRows, kVectors = Lanes::kColumns / Lanes::kLanes;
  typename Lanes::Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (uint32_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kVectors; ++v) sum[r][v] = Lanes::spread(0);
  for (uint32_t k = 0; k < depth; ++k, a += kRows, b += Lanes::kColumns) {
    typename Lanes::Vector columns[kVectors];
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kVectors; ++v) columns[v] = Lanes::load(b + v * Lanes::kLanes);
#pragma GCC unroll 16
    for (uint32_t r = 0; r < kRows; ++r) {
      const typename Lanes::Vector row = Lanes::spread(a[r]);
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kVectors; ++v) sum[r][v] = Lanes::fma(row, columns[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (uint32_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kVectors; ++v) {
      float* const to = sums + uint64_t(r) * stride + v * Lanes::kLanes;
      Lanes::store(to, first ? sum[r][v] : Lanes::add(Lanes::load(to), sum[r][v]));
    }
}

template <class Lanes>
inline void multiply_tile(const GemmBlock& p, const Tile& tile, uint8_t* memory) {
  const uint32_t rows = rounded_up(tile.rows, Lanes::kRows),
                 columns = rounded_up(tile.columns, Lanes::kColumns);
  float* const sums = (float*)memory;
  float* const a_strips = sums + uint64_t(rows) * columns;
  float* const b_strips = a_strips + uint64_t(rows) * kDepth;
  const uint64_t a_first = uint64_t(tile.matrix) * p.a_batch, b_first = uint64_t(tile.matrix) * p.b_batch;
  const uint64_t a_line = p.a_turned ? 1 : p.a_stride, b_line = p.b_turned ? p.b_stride : 1;
  const Operand a = {
      p.a, p.type, tile.rows, a_first + tile.row * a_line, a_line, p.a_turned ? p.a_stride : 1};
  const Operand b = {
      p.b, p.type, tile.columns, b_first + tile.column * b_line, b_line, p.b_turned ? 1 : p.b_stride};
  for (uint32_t k = 0; k < p.k; k += kDepth) {
    const uint32_t depth = least(kDepth, p.k - k);
    pack_strips<Lanes::kRows>(a, k, depth, a_strips);
    pack_strips<Lanes::kColumns>(b, k, depth, b_strips);
    for (uint32_t n = 0; n < columns; n += Lanes::kColumns)
      for (uint32_t m = 0; m < rows; m += Lanes::kRows)
        add_strips<Lanes>(a_strips + uint64_t(m) * depth, b_strips + uint64_t(n) * depth, depth, k == 0,
                          sums + uint64_t(m) * columns + n, columns);
  }
  for (uint32_t m = 0; m < tile.rows; ++m)
    for (uint32_t n = 0; n < tile.columns; ++n)
      store_result(p, tile.matrix, tile.row + m, tile.column + n, sums[uint64_t(m) * columns + n]);
}

template <class Lanes>
inline void gemm_groups(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  const GemmBlock& p = *(const GemmBlock*)block;
  for (uint32_t group = first_group; group < first_group + group_count; ++group)
    multiply_tile<Lanes>(p, tile_of(p, group), scratch->data);
}

}  // namespace
