// Rows of F16, BF16 or F32 weights times few tokens in float32: for 16 weights a load that converts
// and, for each token, an FMA. Four sums for each token hide its latency.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"

namespace {

template <class Floats>
struct FloatRows {
  static uint64_t token_bytes(uint32_t depth) { return uint64_t(depth) * sizeof(float); }
  static void prepare(const float* x, uint32_t depth, uint8_t* slot) {
    __builtin_memcpy(slot, x, uint64_t(depth) * sizeof(float));
  }

  template <int T>
  __attribute__((noinline)) static void row(const uint8_t* weight, uint32_t depth,
                                            const uint8_t* const* slots, float* out, uint32_t stride) {
    constexpr int kSums = 4;
    __m512 sum[kSums][T];
    for (int i = 0; i < kSums; ++i)
      for (int t = 0; t < T; ++t) sum[i][t] = _mm512_setzero_ps();
    uint32_t k = 0;
    for (; k + kSums * 16 <= depth; k += kSums * 16) {
      for (uint32_t line = 0; line < kSums * 16 * Floats::kBytes; line += 64)
        prefetch_weights(weight + k * Floats::kBytes + line + 8192);
      for (int i = 0; i < kSums; ++i) {
        const __m512 w = Floats::load(weight + (k + i * 16) * Floats::kBytes);
        for (int t = 0; t < T; ++t) {
          const __m512 x = _mm512_loadu_ps(slots[t] + (k + i * 16) * sizeof(float));
          sum[i][t] = _mm512_fmadd_ps(w, x, sum[i][t]);
        }
      }
    }
    for (; k < depth; k += 16) {
      const __mmask16 live = depth - k < 16 ? __mmask16((1u << (depth - k)) - 1) : __mmask16(0xffff);
      const __m512 w = Floats::load(weight + k * Floats::kBytes, live);
      for (int t = 0; t < T; ++t)
        sum[0][t] = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(live, slots[t] + k * sizeof(float)), sum[0][t]);
    }
    for (int t = 0; t < T; ++t) {
      const __m512 a = _mm512_add_ps(sum[0][t], sum[1][t]), b = _mm512_add_ps(sum[2][t], sum[3][t]);
      out[t * stride] = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
    }
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    const uint64_t row_bytes = uint64_t(depth) * Floats::kBytes;
    for (uint32_t r = 0; r < count; ++r)
      row<T>(weight + (first + r) * row_bytes, depth, slots, out + r, stride);
  }
};

}  // namespace
