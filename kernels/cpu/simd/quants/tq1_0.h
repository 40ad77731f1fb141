// TQ1_0 (quant/tq1_0.h): bytes times a power of 3, modulo 256, lead with their next digit.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = tq1_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 1, kMost = 2;

  static inline Scales<32> scales(const uint8_t* block) { return scales_only(half_of(block + 52)); }

  // The leading digits of bytes times powers, which come in pairs of bytes.
  static inline __m256i digits(__m256i bytes, __m256i powers) {
    const __m256i even = _mm256_mullo_epi16(bytes, powers);
    const __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(bytes, 8), powers);
    const __m256i x = _mm256_blendv_epi8(even, _mm256_slli_epi16(odd, 8), _mm256_set1_epi16(short(0xff00)));
    // x * 3 / 256: the thirds begin at 86 and 171.
    const __m256i one = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(86)), x);
    const __m256i two = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(char(171))), x);
    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two));
  }
  static inline __m256i powers(short low, short high) {
    return _mm256_set_m128i(_mm_set1_epi16(high), _mm_set1_epi16(low));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    constexpr short power[5] = {1, 3, 9, 27, 81};
    if constexpr (C < 5) return digits(_mm256_loadu_si256((const __m256i*)block), powers(power[C], power[C]));
    const __m128i sixteen = _mm_loadu_si128((const __m128i*)(block + 32));
    if constexpr (C == 5 || C == 6) {
      constexpr int first = C % 5 * 2;
      return digits(_mm256_broadcastsi128_si256(sixteen), powers(power[first], power[first + 1]));
    }
    const __m128i four = _mm_set1_epi32(int(load_u32(block + 48)));
    const __m128i rest = _mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27);
    return digits(_mm256_set_m128i(four, sixteen), _mm256_set_m128i(rest, _mm_set1_epi16(81)));
  }
};

}  // namespace
