// A panel of W ready for VNNI, and its product with tokens in the format q8. For each 16 rows:
//   u8    quants[columns / 4][16][4]       as the type's q plus what makes it unsigned
//   float scale[columns / kGroup][16]
//   float min[columns / kGroup][16]        where the type has minima
// so that a vector holds 4 columns of 16 rows and meets 4 broadcast activations in one vpdpbusd.
//
// Two 16s of rows and 6 tokens: for 32 columns 96 vpdpbusd, 64 loads, then for each of the 12 sums a
// conversion and 2 (with minima 3) multiply-adds: at best 80 % (73 %) of the VNNI peak. Measured on
// one core of a Zen 5: Q4_K 690 Gop/s, Q6_K 610, of 1085.
#pragma once
#include <immintrin.h>

#include "kernels/abi/q8.h"
#include "kernels/cpu/simd/tiles.h"

namespace {

template <uint32_t kGroupColumns, bool kMinima, int32_t kZeroPoint, uint32_t kMostColumns>
struct Panel {
  static constexpr uint32_t kGroup = kGroupColumns;

  static constexpr uint32_t half_bytes(uint32_t columns) {  // of 16 rows
    return columns * 16 + columns / kGroup * 64 * (kMinima ? 2 : 1);
  }
  static constexpr uint32_t scale_at(uint32_t columns) { return columns * 16; }
  static constexpr uint32_t min_at(uint32_t columns) { return columns * 16 + columns / kGroup * 64; }

  // What the tokens' sums contribute for each group: the start of the integer sum that takes the
  // zero point away, or the sum as a float that the minimum multiplies.
  struct Sums {
    union {
      int32_t start[kTileTokens][kMostColumns / kGroup];
      float sum[kTileTokens][kMostColumns / kGroup];
    };
  };

  static inline void take_sums(const TokenTile& tile, uint32_t tokens, uint32_t depth, uint32_t k,
                               uint32_t columns, Sums* out) {
    if constexpr (!kMinima && kZeroPoint == 0) return;
    for (uint32_t t = 0; t < tokens; ++t) {
      const int16_t* sums = (const int16_t*)(tile.x[t] + q8_sums_at(depth)) + k / 16;
      for (uint32_t g = 0; g < columns / kGroup; ++g) {
        const int32_t sum = kGroup == 32 ? sums[2 * g] + sums[2 * g + 1] : sums[g];
        if constexpr (kMinima)
          out->sum[t][g] = float(sum);
        else
          out->start[t][g] = -kZeroPoint * sum;
      }
    }
  }

  // Sums over one group, then scaled into `sum`.
  template <int R, int T>
  static inline void group(const uint8_t* const (&half)[R], uint32_t columns, uint32_t g, uint32_t k,
                           uint32_t depth, const TokenTile& tile, const Sums& sums, __m512 (&sum)[R][T]) {
    __m512i dot[R][T];
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r)
        dot[r][t] = kZeroPoint && !kMinima ? _mm512_set1_epi32(sums.start[t][g]) : _mm512_setzero_si512();
    if (g % (64 / kGroup) == 0)
      for (int t = 0; t < T; ++t) _mm_prefetch((const char*)tile.next[t] + k + g * kGroup, _MM_HINT_T0);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kGroup / 4; ++i) {
      __m512i w[R];
      for (int r = 0; r < R; ++r) w[r] = _mm512_load_si512(half[r] + (g * (kGroup / 4) + i) * 64);
      for (int t = 0; t < T; ++t) {
        int32_t four;
        __builtin_memcpy(&four, tile.x[t] + k + g * kGroup + i * 4, 4);
        const __m512i x = _mm512_set1_epi32(four);
        for (int r = 0; r < R; ++r) dot[r][t] = _mm512_dpbusd_epi32(dot[r][t], w[r], x);
      }
    }
    __m512 scale[R], min[R];
    for (int r = 0; r < R; ++r) {
      scale[r] = _mm512_load_ps(half[r] + scale_at(columns) + g * 64);
      if constexpr (kMinima) min[r] = _mm512_load_ps(half[r] + min_at(columns) + g * 64);
    }
    for (int t = 0; t < T; ++t) {
      const __m512 d =
          _mm512_set1_ps(((const float*)(tile.x[t] + q8_scales_at(depth)))[(k + g * kGroup) / 32]);
      for (int r = 0; r < R; ++r) {
        __m512 part = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[r][t]), scale[r]);
        if constexpr (kMinima) part = _mm512_fnmadd_ps(min[r], _mm512_set1_ps(sums.sum[t][g]), part);
        sum[r][t] = _mm512_fmadd_ps(part, d, sum[r][t]);
      }
    }
  }

  static inline float* y_of(const MatmulBlock& b, const Part& part, const TokenTile& tile, uint32_t t) {
    return (float*)b.y + uint64_t(tile.first + (t < tile.count ? t : tile.count - 1)) * b.n + part.first;
  }

  template <int R, int T>
  __attribute__((noinline)) static void rows(const MatmulBlock& b, const Part& part, const uint8_t* panel,
                                             const TokenTile& tile) {
    Sums sums;
    take_sums(tile, T, b.depth, part.k, part.columns, &sums);
    const uint8_t* half[R];
    __mmask16 live[R];
    for (int r = 0; r < R; ++r) {
      half[r] = panel + r * half_bytes(part.columns);
      const uint32_t left = part.rows - r * 16;
      live[r] = left < 16 ? __mmask16((1u << left) - 1) : __mmask16(0xffff);
    }
    __m512 sum[R][T];
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) {
        _mm_prefetch((const char*)y_of(b, part, tile, t) + r * 64, _MM_HINT_T0);
        sum[r][t] = _mm512_setzero_ps();
      }
    for (uint32_t g = 0; g < part.columns / kGroup; ++g)
      group<R, T>(half, part.columns, g, part.k, b.depth, tile, sums, sum);
    // To the columns before, or the residual, which may be y.
    const int64_t from = part.k ? 0 : (int64_t)(b.residual - b.y);
    const bool add = part.k || b.residual;
    for (int t = 0; t < T && uint32_t(t) < tile.count; ++t)
      for (int r = 0; r < R; ++r) {
        float* y = y_of(b, part, tile, t) + r * 16;
        if (add) sum[r][t] = _mm512_add_ps(_mm512_maskz_loadu_ps(live[r], (const char*)y + from), sum[r][t]);
        _mm512_mask_storeu_ps(y, live[r], sum[r][t]);
      }
  }

  template <int T>
  static inline void tokens(const MatmulBlock& b, const Part& part, const uint8_t* panel,
                            const TokenTile& tile) {
    part.rows > 16 ? rows<2, T>(b, part, panel, tile) : rows<1, T>(b, part, panel, tile);
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    static_assert(kTileTokens == 6, "full tiles, and less work for small ones");
    if (tile.count > 3)
      tokens<6>(b, part, panel, tile);
    else if (tile.count > 1)
      tokens<3>(b, part, panel, tile);
    else
      tokens<1>(b, part, panel, tile);
  }
};

}  // namespace
