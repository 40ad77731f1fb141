// Rows of blocks of 256 weights times few tokens, with VNNI: u8 quants x s8 activations.
//
// For 64 weights: 3 (Q4_K) to 7 (Q6_K) instructions unpack them, then for each token vpdpbusd into
// zero, a conversion, a permutation of the scales and an FMA. A block's scales cost about 22 more.
// Q4_K, one token: 54 instructions for 256 weights (144 bytes).
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/avx512vnni/block.h"
#include "kernels/cpu/simd/avx512vnni/block_many.h"

namespace {

// A token: its row in the format q8, then the scale and (scale x sum) of each 16 values.
struct BlockToken {
  const int8_t* q;
  const float* scale;
  const float* sum;

  BlockToken() = default;
  BlockToken(const uint8_t* slot, uint32_t depth)
      : q((const int8_t*)slot), scale((const float*)(slot + q8_row_bytes(depth))), sum(scale + depth / 16) {}
};

template <class Quants>
struct BlockRows {
  static constexpr uint32_t kTogether = 2;  // rows in flight: more hide latency, fewer keep registers

  static uint64_t token_bytes(uint32_t depth) { return q8_row_bytes(uint64_t(depth)) + depth / 16 * 8; }

  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    q8_row(x, depth, slot);
    const float* scales = (const float*)(slot + q8_scales_at(depth));
    const int16_t* sums = (const int16_t*)(slot + q8_sums_at(depth));
    float* scale = (float*)(slot + q8_row_bytes(depth));
    float* sum = scale + depth / 16;
    const float factor = Quants::kHasMin ? 1.f : float(Quants::kZero);
    for (uint32_t i = 0; i < depth / 16; ++i) {
      scale[i] = scales[i / 2];
      sum[i] = scales[i / 2] * (factor * float(sums[i]));
    }
  }

  // SixteenScales of chunk C's lanes, four to a sixteen.
  template <int C>
  static inline __m512i lanes() {
    const int c = C * 4;
    return _mm512_setr_epi32(c, c, c, c, c + 1, c + 1, c + 1, c + 1, c + 2, c + 2, c + 2, c + 2, c + 3, c + 3,
                             c + 3, c + 3);
  }

  template <int C, int R, int T>
  static inline void chunk(const uint8_t* block, uint64_t row_bytes, uint32_t at, const BlockToken* tokens,
                           const __m512 (&scale)[R][T], __m512 (&sum)[R][T]) {
    __m512i x[T];
    for (int t = 0; t < T; ++t) x[t] = _mm512_loadu_si512(tokens[t].q + at + C * 64);
    for (int r = 0; r < R; ++r) {
      const __m512i q = Quants::template quants<C>(block + r * row_bytes);
      for (int t = 0; t < T; ++t) {
        const __m512 dot = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), q, x[t]));
        sum[r][t] = _mm512_fmadd_ps(dot, _mm512_permutexvar_ps(lanes<C>(), scale[r][t]), sum[r][t]);
      }
    }
  }

  // R rows from `weight` times T tokens.
  template <int R, int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t depth,
                                             const BlockToken* tokens, float* out, uint32_t stride) {
    __m512 sum[R][T];
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) sum[r][t] = _mm512_setzero_ps();
    const uint64_t ahead = prefetch_distance(R * row_bytes);
    for (uint32_t at = 0; at < depth; at += 256, weight += Quants::kBlockBytes) {
      __m512 scale[R][T];
      for (int r = 0; r < R; ++r) {
        for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
          prefetch_weights(weight + r * row_bytes + line + ahead);
        const SixteenScales scales = Quants::scales(weight + r * row_bytes);
        for (int t = 0; t < T; ++t) {
          scale[r][t] = _mm512_mul_ps(scales.scale, _mm512_loadu_ps(tokens[t].scale + at / 16));
          sum[r][t] = _mm512_fnmadd_ps(scales.min, _mm512_loadu_ps(tokens[t].sum + at / 16), sum[r][t]);
        }
      }
      chunk<0>(weight, row_bytes, at, tokens, scale, sum);
      chunk<1>(weight, row_bytes, at, tokens, scale, sum);
      chunk<2>(weight, row_bytes, at, tokens, scale, sum);
      chunk<3>(weight, row_bytes, at, tokens, scale, sum);
    }
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) out[t * stride + r] = _mm512_reduce_add_ps(sum[r][t]);
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    BlockToken tokens[T];
    for (int t = 0; t < T; ++t) tokens[t] = BlockToken(slots[t], depth);
    const uint64_t row_bytes = uint64_t(depth / 256) * Quants::kBlockBytes;
    const uint8_t* row = weight + first * row_bytes;
    uint32_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      rows<kTogether, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
    for (; r < count; ++r) rows<1, T>(row + r * row_bytes, row_bytes, depth, tokens, out + r, stride);
  }

  // The same for more tokens.
  static constexpr uint32_t kManyFrom = 5;
  static void multiply_many(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                            const uint8_t* const* slots, uint32_t token_count, float* out, uint32_t stride) {
    BlockToken tokens[kManyTokens];
    for (uint32_t t = 0; t < token_count; ++t) tokens[t] = BlockToken(slots[t], depth);
    const uint64_t row_bytes = uint64_t(depth / 256) * Quants::kBlockBytes;
    for (uint32_t r = 0; r < count; r += 16)
      BlockMany<Quants, BlockToken>::rows(weight + (first + r) * row_bytes, row_bytes,
                                          count - r < 16 ? count - r : 16, depth, tokens, token_count,
                                          out + r, stride);
  }
};

}  // namespace
