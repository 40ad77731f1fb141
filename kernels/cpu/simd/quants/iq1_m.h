// IQ1_M (quant/iq1_m.h): q is 8 times the value and its delta, plus 9.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq1_m::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 9, kMost = 18;
  static constexpr auto kGrid = iq_grid<8>(kIq1Points, kIq1Levels);

  // Four words of four times 3 bits.
  static inline __m256 eight(const uint8_t* words, __m256 d) {
    const int a = load_u16(words), b = load_u16(words + 2);
    const __m256i shifted = _mm256_srlv_epi32(_mm256_setr_epi32(a, a, a, a, b, b, b, b),
                                              _mm256_setr_epi32(0, 3, 6, 9, 0, 3, 6, 9));
    return odd_steps(d, _mm256_and_si256(shifted, _mm256_set1_epi32(7)));
  }

  static inline Scales<16> scales(const uint8_t* block) {
    const __m256 d = _mm256_set1_ps(iq1_m::load_d(block));
    return scales_only(eight(block + 48, d), eight(block + 52, d));
  }

  static inline int64_t point(const uint8_t* q, uint32_t high, int j) {
    return point_of(kGrid, q[j] | ((high >> 4 * j) & 7) << 8);
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + C * 4;
    const uint32_t high = load_u16(block + 32 + C * 2);
    const __m256i values =
        _mm256_setr_epi64x(point(q, high, 0), point(q, high, 1), point(q, high, 2), point(q, high, 3));
    const __m256i bit =
        _mm256_and_si256(_mm256_set1_epi64x(high), _mm256_setr_epi64x(8, 0x80, 0x800, 0x8000));
    const __m256i positive = _mm256_cmpeq_epi64(bit, _mm256_setzero_si256());
    return _mm256_add_epi8(values, _mm256_and_si256(positive, _mm256_set1_epi8(2)));
  }
};

}  // namespace
