// Rows of blocks of 256 weights times 5 to 8 tokens, with VNNI. Of 16 rows, 256 columns at a time are
// unpacked to the order of a panel (panel.h), which stays in the first-level cache; then all tokens meet it.
//
// For 256 weights and a token: 4 vpdpbusd, 2 (Q4_K) to 4 instructions for the scales, and an eighth of the
// unpacking, where two rows at a time take 17 (block_rows.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"

namespace {

constexpr uint32_t kManyTokens = 8;

template <class Quants, class Token>
struct BlockMany {
  static constexpr uint32_t kGroup = Quants::kGroup, kGroups = 256 / kGroup;

  // 256 columns of 16 rows.
  struct Sixteen {
    alignas(64) uint8_t quants[64 * 64];
    alignas(64) float scale[kGroups][16], min[kGroups][16];
  };

  // T tokens times the columns that are unpacked, which begin with column `at`.
  template <int T>
  __attribute__((noinline)) static void multiply(const Sixteen& sixteen, const Token* tokens, uint32_t at,
                                                 __m512* sum) {
    for (uint32_t g = 0; g < kGroups; ++g) {
      __m512i dot[T];
      for (int t = 0; t < T; ++t) dot[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kGroup / 4; ++i) {
        const __m512i w = _mm512_load_si512(sixteen.quants + (g * (kGroup / 4) + i) * 64);
        for (int t = 0; t < T; ++t) {
          int32_t four;
          __builtin_memcpy(&four, tokens[t].q + at + g * kGroup + i * 4, 4);
          dot[t] = _mm512_dpbusd_epi32(dot[t], w, _mm512_set1_epi32(four));
        }
      }
      const __m512 scale = _mm512_load_ps(sixteen.scale[g]);
      for (int t = 0; t < T; ++t) {
        const uint32_t i = at / 16 + g * (kGroup / 16);
        const float of_min = kGroup == 32 ? tokens[t].sum[i] + tokens[t].sum[i + 1] : tokens[t].sum[i];
        const __m512 whole = _mm512_cvtepi32_ps(dot[t]), d = _mm512_set1_ps(tokens[t].scale[i]);
        if constexpr (Quants::kHasMin) {
          const __m512 min = _mm512_load_ps(sixteen.min[g]);
          const __m512 without = _mm512_fnmadd_ps(min, _mm512_set1_ps(of_min), sum[t]);
          sum[t] = _mm512_fmadd_ps(_mm512_mul_ps(whole, d), scale, without);
        } else {
          sum[t] = _mm512_fmadd_ps(_mm512_fmsub_ps(whole, d, _mm512_set1_ps(of_min)), scale, sum[t]);
        }
      }
    }
  }

  static inline void some_tokens(uint32_t count, const Sixteen& sixteen, const Token* tokens, uint32_t at,
                                 __m512* sum) {
    switch (count) {
      case 5:
        return multiply<5>(sixteen, tokens, at, sum);
      case 6:
        return multiply<6>(sixteen, tokens, at, sum);
      case 7:
        return multiply<7>(sixteen, tokens, at, sum);
      default:
        return multiply<8>(sixteen, tokens, at, sum);
    }
  }

  // 16 rows from `weight`, of which `count` are there, times `token_count` tokens.
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t count,
                                             uint32_t depth, const Token* tokens, uint32_t token_count,
                                             float* out, uint32_t stride) {
    __m512 sum[kManyTokens];
    for (uint32_t t = 0; t < token_count; ++t) sum[t] = _mm512_setzero_ps();
    for (uint32_t at = 0; at < depth; at += 256, weight += Quants::kBlockBytes) {
      Sixteen sixteen;
      const uint8_t* block[16];
      for (uint32_t r = 0; r < 16; ++r)  // rows past the end repeat the last
        block[r] = weight + (r < count ? r : count - 1) * row_bytes;
      BlockTiles<Quants>::unpack_block(block, 16 * row_bytes, sixteen.quants, (uint8_t*)sixteen.scale,
                                       (uint8_t*)sixteen.min);
      some_tokens(token_count, sixteen, tokens, at, sum);
    }
    for (uint32_t t = 0; t < token_count; ++t)
      __builtin_memcpy(out + t * stride, &sum[t], count * sizeof(float));
  }
};

}  // namespace
