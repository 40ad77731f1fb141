// IQ3_S (quant/iq3_s.h): q is the value plus 15.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq3_s::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 15, kMost = 30;

  static inline Scales<32> scales(const uint8_t* block) {
    const __m256i words = _mm256_srlv_epi32(_mm256_set1_epi32(int(load_u32(block + 106))),
                                            _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i scale = _mm256_and_si256(words, _mm256_set1_epi32(15));
    const __m256i steps = _mm256_add_epi32(_mm256_add_epi32(scale, scale), _mm256_set1_epi32(1));
    return scales_only(_mm256_mul_ps(half_of(block), _mm256_cvtepi32_ps(steps)));
  }

  static inline int32_t point(const uint8_t* q, uint32_t high, int j) {
    return point_of(iq3_s::kGrid, q[j] | ((high >> j) & 1) << 8);
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + 2 + C * 8;
    const uint32_t high = block[66 + C];
    const __m256i values =
        _mm256_setr_epi32(point(q, high, 0), point(q, high, 1), point(q, high, 2), point(q, high, 3),
                          point(q, high, 4), point(q, high, 5), point(q, high, 6), point(q, high, 7));
    return signed_bytes(values, load_u32(block + 74 + C * 4), kZero);
  }
};

}  // namespace
