// Rows of blocks of 256 weights times few tokens in AVX2: u8 quants x s8 activations.
//
// For 32 weights: 2 (Q4_K) to 6 (Q6_K) instructions unpack them, then for each token maddubs, madd, a
// conversion, a permutation of the scales and an FMA. A block's scales cost about 20 more.
#pragma once
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/avx2/block.h"
#include "kernels/cpu/simd/avx2/block_many.h"

namespace {

// A token: its row in the format q8, then the scale and (scale x sum) of each group.
struct BlockToken {
  const uint8_t* q;
  const float* scale;
  const float* sum;

  BlockToken() = default;
  BlockToken(const uint8_t* slot, uint32_t depth, uint32_t group)
      : q(slot), scale((const float*)(slot + q8_row_bytes(depth))), sum(scale + depth / group) {}
};

template <class Quants>
struct BlockRows {
  static constexpr uint32_t kGroup = Quants::kGroup;
  static constexpr int kVectors = Scales<kGroup>::kVectors;
  static constexpr uint32_t kTogether = 2;  // rows in flight for one token

  static uint64_t token_bytes(uint32_t depth) { return q8_row_bytes(uint64_t(depth)) + depth / kGroup * 8; }

  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    q8_row(x, depth, slot);
    const float* scales = (const float*)(slot + q8_scales_at(depth));
    const int16_t* sums = (const int16_t*)(slot + q8_sums_at(depth));
    float* scale = (float*)(slot + q8_row_bytes(depth));
    float* sum = scale + depth / kGroup;
    const float factor = Quants::kHasMin ? 1.f : float(Quants::kZero);
    for (uint32_t i = 0; i < depth / kGroup; ++i) {
      const int32_t of_group = kGroup == 32 ? sums[2 * i] + sums[2 * i + 1] : sums[i];
      scale[i] = scales[i * kGroup / 32];
      sum[i] = scale[i] * (factor * float(of_group));
    }
  }

  // The scales of chunk C's lanes: four of each sixteen.
  template <int C>
  static inline __m256 lanes(const __m256 (&scale)[kVectors]) {
    if constexpr (kGroup == 32) return _mm256_permutevar8x32_ps(scale[0], _mm256_set1_epi32(C));
    constexpr int c = 2 * C % 8;
    return _mm256_permutevar8x32_ps(scale[C / 4 % kVectors],
                                    _mm256_setr_epi32(c, c, c, c, c + 1, c + 1, c + 1, c + 1));
  }

  template <int C, int R, int T>
  static inline void chunk(const uint8_t* block, uint64_t row_bytes, uint32_t at, const BlockToken* tokens,
                           const __m256 (&scale)[R][T][kVectors], __m256 (&sum)[R][T]) {
    for (int r = 0; r < R; ++r) {
      const __m256i q = Quants::template quants<C>(block + r * row_bytes);
      for (int t = 0; t < T; ++t) {
        const __m256i x = _mm256_loadu_si256((const __m256i*)(tokens[t].q + at + C * 32));
        const __m256 dot = _mm256_cvtepi32_ps(widen(products<Quants::kMost>(q, x)));
        sum[r][t] = _mm256_fmadd_ps(dot, lanes<C>(scale[r][t]), sum[r][t]);
      }
    }
  }

  // R rows from `weight` times T tokens.
  template <int R, int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t depth,
                                             const BlockToken* tokens, float* out, uint32_t stride) {
    __m256 sum[R][T];
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) sum[r][t] = _mm256_setzero_ps();
    const uint64_t ahead = prefetch_distance(R * row_bytes);
    for (uint32_t at = 0; at < depth; at += 256, weight += Quants::kBlockBytes) {
      __m256 scale[R][T][kVectors];
      for (int r = 0; r < R; ++r) {
        for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
          prefetch_weights(weight + r * row_bytes + line + ahead);
        const Scales<kGroup> scales = Quants::scales(weight + r * row_bytes);
        for (int t = 0; t < T; ++t)
          for (int v = 0; v < kVectors; ++v) {
            const uint32_t group = at / kGroup + v * 8;
            scale[r][t][v] = _mm256_mul_ps(scales.scale[v], _mm256_loadu_ps(tokens[t].scale + group));
            sum[r][t] = _mm256_fnmadd_ps(scales.min[v], _mm256_loadu_ps(tokens[t].sum + group), sum[r][t]);
          }
      }
      chunk<0>(weight, row_bytes, at, tokens, scale, sum);
      chunk<1>(weight, row_bytes, at, tokens, scale, sum);
      chunk<2>(weight, row_bytes, at, tokens, scale, sum);
      chunk<3>(weight, row_bytes, at, tokens, scale, sum);
      chunk<4>(weight, row_bytes, at, tokens, scale, sum);
      chunk<5>(weight, row_bytes, at, tokens, scale, sum);
      chunk<6>(weight, row_bytes, at, tokens, scale, sum);
      chunk<7>(weight, row_bytes, at, tokens, scale, sum);
    }
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) out[t * stride + r] = lane_sum(sum[r][t]);
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    BlockToken tokens[T];
    for (int t = 0; t < T; ++t) tokens[t] = BlockToken(slots[t], depth, kGroup);
    const uint64_t row_bytes = uint64_t(depth / 256) * Quants::kBlockBytes;
    const uint8_t* row = weight + first * row_bytes;
    uint32_t r = 0;
    if constexpr (T == 1)
      for (; r + kTogether <= count; r += kTogether)
        rows<kTogether, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
    for (; r < count; ++r) rows<1, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
  }

  // The same for more tokens. 2048 x 2048 of Q4_K for 2, 3, 4, 8 tokens took 316, 402, 515, 1032 us one row
  // at a time, 182, 199, 262, 431 this way. A type whose planes are not transposed (block_tiles.h) gains from
  // 5 tokens on.
  static constexpr uint32_t kManyFrom = BlockTiles<Quants>::kTransposesPlanes ? 2 : 5;
  static void multiply_many(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                            const uint8_t* const* slots, uint32_t token_count, float* out, uint32_t stride) {
    BlockToken tokens[kManyTokens];
    for (uint32_t t = 0; t < token_count; ++t) tokens[t] = BlockToken(slots[t], depth, kGroup);
    const uint64_t row_bytes = uint64_t(depth / 256) * Quants::kBlockBytes;
    for (uint32_t r = 0; r < count; r += 16)
      BlockMany<Quants, BlockToken>::rows(weight + (first + r) * row_bytes, row_bytes,
                                          count - r < 16 ? count - r : 16, depth, tokens, token_count,
                                          out + r, stride);
  }
};

}  // namespace
