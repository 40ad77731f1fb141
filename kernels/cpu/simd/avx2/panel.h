// A panel of W for AVX2, and its product with tokens in the format q8. For each 8 rows:
//   byte  quants[columns / 4][8][4]        unsigned: the type's q plus its zero point; signed: the weights
//   float scale[columns / kGroup][8]
//   float min[columns / kGroup][8]         where the type has minima
// so that a vector holds 4 columns of 8 rows and meets 4 broadcast activations in one maddubs.
//
// Two 8s of rows and 3 tokens: for 4 columns 6 maddubs and 6 adds of int16 where the quants are small
// (kMost), 6 madd and 6 adds of int32 each time the int16 are full.
#pragma once
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/tiles.h"

namespace {

// The value of a sum that is computed where it is written: GCC would first make all products of a group, for
// which there are no registers, and add them afterwards.
inline __m256i in_order(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}

// kMost: the largest quant; 0: signed weights, whose absolute values meet x with their sign.
template <uint32_t kGroupColumns, bool kMinima, int32_t kZeroPoint, int32_t kMost, uint32_t kMostColumns>
struct Panel {
  static constexpr uint32_t kGroup = kGroupColumns;
  static constexpr uint32_t kEights = kPanelRows / 8;
  static constexpr uint32_t kTogether = 3;  // tokens

  // Steps of 4 columns whose products fit an int16: each is at most 2 x kMost x 127.
  static constexpr uint32_t kFit = kMost == 0 ? 1 : 32767 / (2 * kMost * 127);
  static constexpr uint32_t kSteps = kFit >= kGroup / 4 ? kGroup / 4 : kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;

  static constexpr uint32_t eight_bytes(uint32_t columns) {  // of 8 rows
    return columns * 8 + columns / kGroup * 32 * (kMinima ? 2 : 1);
  }
  static constexpr uint32_t scale_at(uint32_t columns) { return columns * 8; }
  static constexpr uint32_t min_at(uint32_t columns) { return columns * 8 + columns / kGroup * 32; }

  // What the tokens' sums contribute for each group: the start of the integer sum that takes the
  // zero point away, or the sum as a float that the minimum multiplies.
  struct Sums {
    union {
      int32_t start[kTileTokens][kMostColumns / kGroup];
      float sum[kTileTokens][kMostColumns / kGroup];
    };
  };

  static inline void take_sums(const TokenTile& tile, uint32_t depth, const Part& part, Sums* out) {
    if constexpr (!kMinima && kZeroPoint == 0) return;
    for (uint32_t t = 0; t < tile.count; ++t) {
      const int16_t* sums = (const int16_t*)(tile.x[t] + q8_sums_at(depth)) + part.k / 16;
      for (uint32_t g = 0; g < part.columns / kGroup; ++g) {
        const int32_t sum = kGroup == 32 ? sums[2 * g] + sums[2 * g + 1] : sums[g];
        if constexpr (kMinima)
          out->sum[t][g] = float(sum);
        else
          out->start[t][g] = -kZeroPoint * sum;
      }
    }
  }

  // Integer sums over one group. `dot` holds what they start with.
  template <int R, int T>
  static inline void dots(const uint8_t* const (&eight)[R], uint32_t g, const uint8_t* const (&x)[T],
                          __m256i (&dot)[R][T]) {
    for (uint32_t i = 0; i < kGroup / 4; i += kSteps) {
      if constexpr (kSteps <= 2)
        few_steps<R, T>(eight, g, i, x, dot);
      else
        many_steps<R, T>(eight, g, i, x, dot);
    }
  }

  // kSteps steps of 4 columns from step i of the group. Sums of int16 are short-lived, the weights stay.
  template <int R, int T>
  static inline void few_steps(const uint8_t* const (&eight)[R], uint32_t g, uint32_t i,
                               const uint8_t* const (&x)[T], __m256i (&dot)[R][T]) {
    __m256i w[R][kSteps];
    for (int r = 0; r < R; ++r)
      for (uint32_t j = 0; j < kSteps; ++j)
        w[r][j] = _mm256_loadu_si256((const __m256i*)(eight[r] + (g * (kGroup / 4) + i + j) * 32));
    for (int t = 0; t < T; ++t) {
      __m256i four[kSteps];
      for (uint32_t j = 0; j < kSteps; ++j) four[j] = broadcast4(x[t] + g * kGroup + (i + j) * 4);
      for (int r = 0; r < R; ++r) {
        __m256i sum = products<kMost>(w[r][0], four[0]);
        for (uint32_t j = 1; j < kSteps; ++j)
          sum = in_order(_mm256_add_epi16(sum, products<kMost>(w[r][j], four[j])));
        dot[r][t] = in_order(_mm256_add_epi32(dot[r][t], widen(sum)));
      }
    }
  }

  // The same where sums of int16 take many: they stay, the weights pass by.
  template <int R, int T>
  static inline void many_steps(const uint8_t* const (&eight)[R], uint32_t g, uint32_t i,
                                const uint8_t* const (&x)[T], __m256i (&dot)[R][T]) {
    __m256i sum[R][T];
#pragma GCC unroll 8
    for (uint32_t j = 0; j < kSteps; ++j) {
      __m256i w[R];
      for (int r = 0; r < R; ++r)
        w[r] = _mm256_loadu_si256((const __m256i*)(eight[r] + (g * (kGroup / 4) + i + j) * 32));
      for (int t = 0; t < T; ++t) {
        const __m256i four = broadcast4(x[t] + g * kGroup + (i + j) * 4);
        for (int r = 0; r < R; ++r) {
          const __m256i product = products<kMost>(w[r], four);
          sum[r][t] = j == 0 ? product : in_order(_mm256_add_epi16(sum[r][t], product));
        }
      }
    }
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) dot[r][t] = in_order(_mm256_add_epi32(dot[r][t], widen(sum[r][t])));
  }

  // T tokens from `token` of the tile, R eights of rows from `first`.
  template <int R, int T>
  __attribute__((noinline)) static void rows(const MatmulBlock& b, const Part& part, const uint8_t* panel,
                                             const TokenTile& tile, const Sums& sums, uint32_t token,
                                             uint32_t first) {
    const uint8_t *eight[R], *x[T];
    for (int r = 0; r < R; ++r) eight[r] = panel + (first / 8 + r) * eight_bytes(part.columns);
    for (int t = 0; t < T; ++t) x[t] = tile.x[token + t] + part.k;
    __m256 sum[R][T];
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) sum[r][t] = _mm256_setzero_ps();
    for (uint32_t g = 0; g < part.columns / kGroup; ++g) {
      __m256i dot[R][T];
      for (int t = 0; t < T; ++t)
        for (int r = 0; r < R; ++r)
          dot[r][t] =
              kZeroPoint && !kMinima ? _mm256_set1_epi32(sums.start[token + t][g]) : _mm256_setzero_si256();
      dots<R, T>(eight, g, x, dot);
      for (int t = 0; t < T; ++t) {
        const float* scales = (const float*)(tile.x[token + t] + q8_scales_at(b.depth));
        const __m256 d = _mm256_set1_ps(scales[(part.k + g * kGroup) / 32]);
        for (int r = 0; r < R; ++r) {
          const __m256 scale = _mm256_loadu_ps((const float*)(eight[r] + scale_at(part.columns)) + g * 8);
          __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[r][t]), scale);
          if constexpr (kMinima) {
            const __m256 min = _mm256_loadu_ps((const float*)(eight[r] + min_at(part.columns)) + g * 8);
            scaled = _mm256_fnmadd_ps(min, _mm256_set1_ps(sums.sum[token + t][g]), scaled);
          }
          sum[r][t] = _mm256_fmadd_ps(scaled, d, sum[r][t]);
        }
      }
    }
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) store(b, part, tile.first + token + t, first + r * 8, sum[r][t]);
  }

  // 8 values to y, added to the columns before or the residual, which may be y.
  static inline void store(const MatmulBlock& b, const Part& part, uint32_t token, uint32_t row, __m256 sum) {
    if (row >= part.rows) return;
    const uint64_t at = uint64_t(token) * b.n + part.first + row;
    float* y = (float*)b.y + at;
    const float* before = part.k ? y : b.residual ? (const float*)b.residual + at : nullptr;
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i live = _mm256_cmpgt_epi32(_mm256_set1_epi32(int32_t(part.rows - row)), lane);
    if (before) sum = _mm256_add_ps(_mm256_maskload_ps(before, live), sum);
    _mm256_maskstore_ps(y, live, sum);
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    Sums sums;
    take_sums(tile, b.depth, part, &sums);
    for (uint32_t row = 0; row < part.rows; row += 16) {
      uint32_t t = 0;
      for (; t + kTogether <= tile.count; t += kTogether)
        rows<2, kTogether>(b, part, panel, tile, sums, t, row);
      for (; t < tile.count; ++t) rows<2, 1>(b, part, panel, tile, sums, t, row);
    }
  }
};

}  // namespace
