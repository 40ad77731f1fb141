// MXFP4 (quant/mxfp4.h): 8 blocks of 32 are taken as one of 256; q is the value plus 12.
// With AVX-512, few tokens meet it as avx512vnni/mxfp4.h says.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * mxfp4::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 12, kMost = 24;

  static inline Scales<32> scales(const uint8_t* block) {
    constexpr uint32_t next = mxfp4::kBlockBytes;
    const __m256i e = _mm256_setr_epi32(block[0], block[next], block[2 * next], block[3 * next],
                                        block[4 * next], block[5 * next], block[6 * next], block[7 * next]);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    const __m256i bits = _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
    return scales_only(_mm256_castsi256_ps(bits));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i values = look_up(mxfp4::kValues, nibbles(block + C * mxfp4::kBlockBytes + 1));
    return _mm256_add_epi8(values, _mm256_set1_epi8(kZero));
  }
};

}  // namespace
