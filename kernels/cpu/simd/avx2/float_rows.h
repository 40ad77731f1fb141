// Rows of F16, BF16 or F32 weights times few tokens in float32: for 8 weights a load that converts
// and, for each token, an FMA. Four sums for each token hide its latency.
#pragma once
#include "kernels/cpu/simd/avx2.h"

namespace {

// The last columns of a row, with zeros behind.
template <class Floats>
inline __m256 load_last(const uint8_t* from, uint32_t count) {
  uint8_t eight[8 * Floats::kBytes] = {};
  __builtin_memcpy(eight, from, count * Floats::kBytes);
  return Floats::load(eight);
}

inline __m256 load_last(const float* from, uint32_t count) {
  float eight[8] = {};
  __builtin_memcpy(eight, from, count * sizeof(float));
  return _mm256_loadu_ps(eight);
}

template <class Floats>
struct FloatRows {
  static constexpr int kSums = 4;
  static constexpr int kTogether = 2;  // tokens: their sums fill the registers

  static uint64_t token_bytes(uint32_t depth) { return uint64_t(depth) * sizeof(float); }
  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    __builtin_memcpy(slot, x, uint64_t(depth) * sizeof(float));
  }

  template <int T>
  __attribute__((noinline)) static void row(const uint8_t* weight, uint32_t depth,
                                            const uint8_t* const* slots, float* out, uint32_t stride) {
    __m256 sum[kSums][T];
    for (int i = 0; i < kSums; ++i)
      for (int t = 0; t < T; ++t) sum[i][t] = _mm256_setzero_ps();
    uint32_t k = 0;
    for (; k + kSums * 8 <= depth; k += kSums * 8) {
      for (uint32_t line = 0; line < kSums * 8 * Floats::kBytes; line += 64)
        prefetch_weights(weight + k * Floats::kBytes + line + 8192);
      for (int i = 0; i < kSums; ++i) {
        const __m256 w = Floats::load(weight + (k + i * 8) * Floats::kBytes);
        for (int t = 0; t < T; ++t)
          sum[i][t] = _mm256_fmadd_ps(w, _mm256_loadu_ps((const float*)slots[t] + k + i * 8), sum[i][t]);
      }
    }
    for (; k < depth; k += 8) {
      const uint32_t left = depth - k < 8 ? depth - k : 8;
      const __m256 w = load_last<Floats>(weight + k * Floats::kBytes, left);
      for (int t = 0; t < T; ++t)
        sum[0][t] = _mm256_fmadd_ps(w, load_last((const float*)slots[t] + k, left), sum[0][t]);
    }
    for (int t = 0; t < T; ++t) {
      const __m256 a = _mm256_add_ps(sum[0][t], sum[1][t]), b = _mm256_add_ps(sum[2][t], sum[3][t]);
      out[t * stride] = lane_sum(_mm256_add_ps(a, b));
    }
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    const uint64_t row_bytes = uint64_t(depth) * Floats::kBytes;
    for (uint32_t r = 0; r < count; ++r) {
      const uint8_t* from = weight + (first + r) * row_bytes;
      for (int t = 0; t < T; t += kTogether)
        T - t > 1 ? row<2>(from, depth, slots + t, out + t * stride + r, stride)
                  : row<1>(from, depth, slots + t, out + t * stride + r, stride);
    }
  }
};

}  // namespace
