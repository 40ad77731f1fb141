// Rows of F16, BF16 or F32 weights times many tokens in float32. Nothing is unpacked: 4 rows meet 3
// tokens, so that 8 columns are 4 converting loads, 3 loads of x and 12 FMAs into 12 sums, whose lanes
// are added at the end of a part. The part's x stays in the first-level cache.
#pragma once
#include "kernels/cpu/simd/avx2/float_rows.h"
#include "kernels/cpu/simd/tiles.h"

namespace {

template <class Floats>
struct FloatTiles {
  static constexpr uint32_t kUnit = 1024;
  static constexpr uint32_t kPanelDepth = 1024;
  static constexpr uint32_t kBlockTokens = 96;
  static constexpr uint32_t kTogether = 3;  // tokens

  static uint64_t x_bytes(uint64_t depth) { return depth * sizeof(float); }
  static uint64_t panel_bytes(uint32_t) { return 0; }
  static void unpack(const MatmulBlock&, const Part&, uint8_t*) {}

  template <int R, int T>
  __attribute__((noinline)) static void rows(const MatmulBlock& b, const Part& part, uint32_t row,
                                             const TokenTile& tile, uint32_t token) {
    const uint64_t row_bytes = uint64_t(b.depth) * Floats::kBytes;
    const uint8_t* w =
        (const uint8_t*)b.weight + (part.first + row) * row_bytes + uint64_t(part.k) * Floats::kBytes;
    const float* x[T];
    for (int t = 0; t < T; ++t) x[t] = (const float*)tile.x[token + t] + part.k;
    __m256 sum[R][T];
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) sum[r][t] = _mm256_setzero_ps();
    uint32_t k = 0;
    for (; k + 8 <= part.columns; k += 8) {
      __m256 v[T];
      for (int t = 0; t < T; ++t) v[t] = _mm256_loadu_ps(x[t] + k);
      for (int r = 0; r < R; ++r) {
        const __m256 weights = Floats::load(w + r * row_bytes + k * Floats::kBytes);
        for (int t = 0; t < T; ++t) sum[r][t] = _mm256_fmadd_ps(weights, v[t], sum[r][t]);
      }
    }
    if (k < part.columns)
      for (int r = 0; r < R; ++r) {
        const __m256 weights = load_last<Floats>(w + r * row_bytes + k * Floats::kBytes, part.columns - k);
        for (int t = 0; t < T; ++t)
          sum[r][t] = _mm256_fmadd_ps(weights, load_last(x[t] + k, part.columns - k), sum[r][t]);
      }
    const float* before = part.k ? (const float*)b.y : (const float*)b.residual;  // may be y
    for (int t = 0; t < T; ++t) {
      const uint64_t at = uint64_t(tile.first + token + t) * b.n + part.first + row;
      for (int r = 0; r < R; ++r) {
        const float all = lane_sum(sum[r][t]);
        ((float*)b.y)[at + r] = before ? before[at + r] + all : all;
      }
    }
  }

  template <int R>
  static inline void tokens(const MatmulBlock& b, const Part& part, uint32_t row, const TokenTile& tile) {
    uint32_t t = 0;
    for (; t + kTogether <= tile.count; t += kTogether) rows<R, kTogether>(b, part, row, tile, t);
    for (; t < tile.count; ++t) rows<R, 1>(b, part, row, tile, t);
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t*, const TokenTile& tile) {
    uint32_t row = 0;
    for (; row + 4 <= part.rows; row += 4) tokens<4>(b, part, row, tile);
    for (; row < part.rows; ++row) tokens<1>(b, part, row, tile);
  }
};

}  // namespace
