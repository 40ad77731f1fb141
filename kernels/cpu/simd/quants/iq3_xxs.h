// IQ3_XXS (quant/iq3_xxs.h): q is the value plus 62.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq3_xxs::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 62, kMost = 124;

  static inline Scales<32> scales(const uint8_t* block) {
    const __m256i words = _mm256_loadu_si256((const __m256i*)(block + 66));
    return scales_only(half_steps(half_of(block), _mm256_srli_epi32(words, 28), 0.5f));
  }

  static inline int32_t point(const uint8_t* q, int j) { return point_of(iq3_xxs::kGrid, q[j]); }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + 2 + C * 8;
    const __m256i values = _mm256_setr_epi32(point(q, 0), point(q, 1), point(q, 2), point(q, 3), point(q, 4),
                                             point(q, 5), point(q, 6), point(q, 7));
    return signed_bytes(values, four_even_signs(four_sevens(load_u32(block + 66 + C * 4))), kZero);
  }
};

}  // namespace
