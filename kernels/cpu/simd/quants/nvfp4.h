// NVFP4 (quant/nvfp4.h): 4 blocks of 64 are taken as one of 256; q is the value plus 12.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 4 * nvfp4::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 12, kMost = 24;

  // 8 of the scales, two blocks.
  static inline __m256 eight(const uint8_t* block) {
    const __m128i bytes =
        _mm_setr_epi32(int(load_u32(block)), int(load_u32(block + nvfp4::kBlockBytes)), 0, 0);
    const __m256i word = _mm256_cvtepu8_epi32(bytes);
    const __m256i bits = _mm256_slli_epi32(_mm256_and_si256(word, _mm256_set1_epi32(127)), 20);
    const __m256i normal = _mm256_add_epi32(bits, _mm256_set1_epi32((127 - 8) << 23));
    const __m256 small = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_and_si256(word, _mm256_set1_epi32(7))),
                                       _mm256_set1_ps(0x1p-10f));
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(1 << 23), bits);
    const __m256 scale = _mm256_blendv_ps(_mm256_castsi256_ps(normal), small, _mm256_castsi256_ps(is_small));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(word, _mm256_set1_epi32(127))), scale);
  }

  static inline Scales<16> scales(const uint8_t* block) {
    return scales_only(eight(block), eight(block + 2 * nvfp4::kBlockBytes));
  }

  // Two groups: each the low halves of 8 bytes, then the high ones.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i both = nibbles(block + C / 2 * nvfp4::kBlockBytes + 4 + C % 2 * 16);
    const __m256i order = _mm256_permute4x64_epi64(both, 0xd8);
    return _mm256_add_epi8(look_up(nvfp4::kValues, order), _mm256_set1_epi8(kZero));
  }
};

}  // namespace
