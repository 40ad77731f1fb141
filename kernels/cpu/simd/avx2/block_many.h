// Rows of blocks of 256 weights times 2 to 8 tokens in AVX2. Of 16 rows, 256 columns at a time are unpacked
// to the order of a panel (panel.h), which stays in the first-level cache, as do the sums; then three or four
// tokens at a time meet it.
//
// For 256 weights and a token: 8 maddubs, 8 adds of int16 (Q4_K), 5 instructions for each group of a vector
// of rows, and an eighth of the unpacking, where one row at a time takes 40 (block_rows.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_tiles.h"

namespace {

constexpr uint32_t kManyTokens = 8;

template <class Quants, class Token>
struct BlockMany {
  static constexpr uint32_t kGroup = Quants::kGroup, kGroups = 256 / kGroup;
  static constexpr int kEights = 2;
  using Form = Panel<kGroup, Quants::kHasMin, Quants::kZero, Quants::kMost, 256>;

  // Tokens that meet a vector of weights together: as many as there are registers for the int16 sums, and
  // for int32 sums too where int16 cannot hold a group. 2048 x 2048 of Q6_K times 8 tokens took 650 us with
  // 3 together, 660 with 4, 708 with 2.
  static constexpr int kTogether = Form::kSteps == kGroup / 4 ? 4 : 3;

  struct Eight {
    alignas(32) uint8_t quants[64 * 32];
    alignas(32) float scale[kGroups][8], min[kGroups][8];
  };
  using Sums = __m256[kManyTokens][kEights];

  // 16 rows that come next, row_bytes apart; none if rows is null.
  struct Ahead {
    const uint8_t* rows;
    uint64_t row_bytes;
  };

  // The blocks of some rows for each group: all at once would fill the queue of misses.
  static inline void fetch(const Ahead& ahead, uint32_t g) {
    constexpr uint32_t kRows = 16 / kGroups;
    for (uint32_t r = g * kRows; r < (g + 1) * kRows; ++r)
      for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
        prefetch_weights(ahead.rows + r * ahead.row_bytes + line);
  }

  // T tokens times the columns that are unpacked, which begin with column `at`.
  template <int T>
  __attribute__((noinline)) static void multiply(const Eight* eights, const Token* tokens, uint32_t at,
                                                 const Ahead& ahead, __m256 (*sum)[kEights]) {
    const uint8_t *eight[kEights], *x[T];
    for (int r = 0; r < kEights; ++r) eight[r] = eights[r].quants;
    for (int t = 0; t < T; ++t) x[t] = tokens[t].q + at;
    for (uint32_t g = 0; g < kGroups; ++g) {
      if (ahead.rows) fetch(ahead, g);
      __m256i dot[kEights][T];
      for (int r = 0; r < kEights; ++r)
        for (int t = 0; t < T; ++t) dot[r][t] = _mm256_setzero_si256();
      Form::template dots<kEights, T>(eight, g, x, dot);
      for (int t = 0; t < T; ++t) {
        const __m256 d = _mm256_broadcast_ss(tokens[t].scale + at / kGroup + g);
        const __m256 of_min = _mm256_broadcast_ss(tokens[t].sum + at / kGroup + g);
        for (int r = 0; r < kEights; ++r) {
          const __m256 scale = _mm256_load_ps(eights[r].scale[g]);
          const __m256 whole = _mm256_cvtepi32_ps(dot[r][t]);
          if constexpr (Quants::kHasMin) {
            const __m256 without = _mm256_fnmadd_ps(_mm256_load_ps(eights[r].min[g]), of_min, sum[t][r]);
            sum[t][r] = _mm256_fmadd_ps(_mm256_mul_ps(whole, d), scale, without);
          } else {
            sum[t][r] = _mm256_fmadd_ps(_mm256_fmsub_ps(whole, d, of_min), scale, sum[t][r]);
          }
        }
      }
    }
  }

  // The first T of `left` tokens, or all if there are fewer. Returns how many.
  template <int T>
  static inline uint32_t some_tokens(uint32_t left, const Eight* eights, const Token* tokens, uint32_t at,
                                     const Ahead& ahead, __m256 (*sum)[kEights]) {
    if constexpr (T > 1)
      if (left < T) return some_tokens<T - 1>(left, eights, tokens, at, ahead, sum);
    multiply<T>(eights, tokens, at, ahead, sum);
    return T;
  }

  // 16 rows from `weight`, of which `count` are there, times `token_count` tokens.
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t count,
                                             uint32_t depth, const Token* tokens, uint32_t token_count,
                                             float* out, uint32_t stride) {
    Sums sum;
    for (uint32_t t = 0; t < token_count; ++t) sum[t][0] = sum[t][1] = _mm256_setzero_ps();
    for (uint32_t at = 0; at < depth; at += 256, weight += Quants::kBlockBytes) {
      Eight eights[kEights];
      for (uint32_t e = 0; e < kEights; ++e) {
        const uint8_t* block[8];
        for (uint32_t r = 0; r < 8; ++r)  // rows past the end repeat the last
          block[r] = weight + (e * 8 + r < count ? e * 8 + r : count - 1) * row_bytes;
        BlockTiles<Quants>::unpack_block(block, eights[e].quants, (uint8_t*)eights[e].scale,
                                         (uint8_t*)eights[e].min);
      }
      Ahead ahead = {weight + 16 * row_bytes, row_bytes};
      for (uint32_t t = 0; t < token_count; ahead.rows = nullptr)
        t += some_tokens<kTogether>(token_count - t, eights, tokens + t, at, ahead, sum + t);
    }
    for (uint32_t t = 0; t < token_count; ++t)
      __builtin_memcpy(out + t * stride, sum[t], count * sizeof(float));
  }
};

}  // namespace
