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

  // R rows, `row_bytes` apart, times T tokens.
  template <int R, int T>
  __attribute__((noinline)) static void rows(const uint8_t* weight, uint64_t row_bytes, uint32_t depth,
                                             const uint8_t* const* slots, float* out, uint32_t stride) {
    constexpr int kSums = 4;
    constexpr uint64_t kAhead = R == 1 ? 8192 : 16384;
    __m512 sum[R][kSums][T];
    for (int r = 0; r < R; ++r)
      for (int i = 0; i < kSums; ++i)
        for (int t = 0; t < T; ++t) sum[r][i][t] = _mm512_setzero_ps();
    uint32_t k = 0;
    for (; k + kSums * 16 <= depth; k += kSums * 16) {
      const uint8_t* const at = weight + uint64_t(k) * Floats::kBytes;
      for (int r = 0; r < R; ++r)
        for (uint32_t line = 0; line < kSums * 16 * Floats::kBytes; line += 64)
          prefetch_weights(at + r * row_bytes + line + kAhead);
      for (int i = 0; i < kSums; ++i)
        for (int r = 0; r < R; ++r) {
          const __m512 w = Floats::load(at + r * row_bytes + i * 16 * Floats::kBytes);
          for (int t = 0; t < T; ++t) {
            const __m512 x = _mm512_loadu_ps(slots[t] + (k + i * 16) * sizeof(float));
            sum[r][i][t] = _mm512_fmadd_ps(w, x, sum[r][i][t]);
          }
        }
    }
    for (; k < depth; k += 16) {
      const __mmask16 live = depth - k < 16 ? __mmask16((1u << (depth - k)) - 1) : __mmask16(0xffff);
      for (int r = 0; r < R; ++r) {
        const __m512 w = Floats::load(weight + r * row_bytes + uint64_t(k) * Floats::kBytes, live);
        for (int t = 0; t < T; ++t)
          sum[r][0][t] =
              _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(live, slots[t] + k * sizeof(float)), sum[r][0][t]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (int t = 0; t < T; ++t) {
        const __m512 a = _mm512_add_ps(sum[r][0][t], sum[r][1][t]);
        const __m512 b = _mm512_add_ps(sum[r][2][t], sum[r][3][t]);
        out[t * stride + r] = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
      }
  }

  template <int T>
  static void multiply(const uint8_t* weight, uint32_t, uint32_t first, uint32_t count, uint32_t depth,
                       const uint8_t* const* slots, float* out, uint32_t stride) {
    constexpr int kTogether = T == 1 ? 4 : 1;  // rows: their sums fit the registers
    const uint64_t row_bytes = uint64_t(depth) * Floats::kBytes;
    uint32_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      rows<kTogether, T>(weight + (first + r) * row_bytes, row_bytes, depth, slots, out + r, stride);
    for (; r < count; ++r)
      rows<1, T>(weight + (first + r) * row_bytes, row_bytes, depth, slots, out + r, stride);
  }
};

}  // namespace
