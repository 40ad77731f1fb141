// IQ4_XS (quant/iq4_xs.h); the values are signed.
// With AVX-512, few tokens meet it as avx512vnni/iq4_xs.h says.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq4_xs::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 0, kMost = 0;

  static inline Scales<32> scales(const uint8_t* block) {
    const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32(int(load_u32(block + 4))),
                                          _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(load_u16(block + 2)),
                                           _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i six = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                        _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    const __m256 scale = _mm256_cvtepi32_ps(_mm256_sub_epi32(six, _mm256_set1_epi32(32)));
    return scales_only(_mm256_mul_ps(scale, half_of(block)));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    return look_up(iq4_xs::kValues, nibbles(block + 8 + C * 16));
  }
};

}  // namespace
