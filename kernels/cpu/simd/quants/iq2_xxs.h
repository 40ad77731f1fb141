// IQ2_XXS (quant/iq2_xxs.h): q is the value plus 43.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq2_xxs::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 43, kMost = 86;

  // The second word of each group: even places of the 16.
  static inline Scales<32> scales(const uint8_t* block) {
    const __m256 a = _mm256_loadu_ps((const float*)(block + 2)),
                 b = _mm256_loadu_ps((const float*)(block + 34));
    const __m256i words = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    const __m256i scale = _mm256_permute4x64_epi64(_mm256_srli_epi32(words, 28), 0xd8);
    return scales_only(half_steps(half_of(block), scale, 0.25f));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + 2 + C * 8;
    const __m256i values = _mm256_setr_epi64x(point_of(iq2_xxs::kGrid, q[0]), point_of(iq2_xxs::kGrid, q[1]),
                                              point_of(iq2_xxs::kGrid, q[2]), point_of(iq2_xxs::kGrid, q[3]));
    return signed_bytes(values, four_even_signs(four_sevens(load_u32(q + 4))), kZero);
  }
};

}  // namespace
