// Q2_0 (quant/q2_0.h): 4 blocks of 64 are taken as one of 256.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 4 * q2_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 1, kMost = 3;

  static inline Scales<32> scales(const uint8_t* block) {
    constexpr uint32_t next = q2_0::kBlockBytes;
    const short d[4] = {short(load_u16(block)), short(load_u16(block + next)),
                        short(load_u16(block + 2 * next)), short(load_u16(block + 3 * next))};
    return scales_only(_mm256_cvtph_ps(_mm_setr_epi16(d[0], d[0], d[1], d[1], d[2], d[2], d[3], d[3])));
  }

  // 8 bytes, each four times; then each of the four keeps its two bits and moves them down.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* from = block + C / 2 * q2_0::kBlockBytes + 2 + C % 2 * 8;
    const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
    const __m256i bytes = _mm256_or_si256(words, _mm256_slli_epi32(words, 8 - 2));
    const __m256i all = _mm256_or_si256(bytes, _mm256_slli_epi32(bytes, 16 - 4));
    return _mm256_and_si256(all, _mm256_set1_epi8(3));
  }
};

}  // namespace
