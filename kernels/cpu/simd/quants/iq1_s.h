// IQ1_S (quant/iq1_s.h): q is 8 times the value and its delta, plus 9.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq1_s::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 9, kMost = 18;
  static constexpr auto kGrid = iq_grid<8>(kIq1Points, kIq1Levels);

  static inline Scales<32> scales(const uint8_t* block) {
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(block + 34)));
    const __m256i scale = _mm256_and_si256(_mm256_srli_epi32(words, 12), _mm256_set1_epi32(7));
    return scales_only(odd_steps(half_of(block), scale));
  }

  static inline int64_t point(const uint8_t* q, uint32_t high, int j) {
    return point_of(kGrid, q[j] | ((high >> 3 * j) & 7) << 8);
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + 2 + C * 4;
    const uint32_t high = load_u16(block + 34 + C * 2);
    const __m256i values =
        _mm256_setr_epi64x(point(q, high, 0), point(q, high, 1), point(q, high, 2), point(q, high, 3));
    return _mm256_add_epi8(values, _mm256_set1_epi8(high & 0x8000 ? 0 : 2));
  }
};

}  // namespace
