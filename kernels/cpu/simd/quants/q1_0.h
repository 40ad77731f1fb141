// Q1_0 (quant/q1_0.h): 2 blocks of 128 are taken as one of 256; q is 0 or 2.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 2 * q1_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 1, kMost = 2;

  static inline Scales<32> scales(const uint8_t* block) {
    return scales_only(_mm256_blend_ps(half_of(block), half_of(block + q1_0::kBlockBytes), 0xf0));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint32_t bits = load_u32(block + C / 4 * q1_0::kBlockBytes + 2 + C % 4 * 4);
    return _mm256_and_si256(bytes_of_bits(bits), _mm256_set1_epi8(2));
  }
};

}  // namespace
