// Q5_1 (quant/q5_1.h): 8 blocks of 32 are taken as one of 256.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * q5_1::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0, kMost = 31;

  static inline Scales<32> scales(const uint8_t* block) {
    return {{eight_halves<q5_1::kBlockBytes>(block)}, {negative(eight_halves<q5_1::kBlockBytes>(block + 2))}};
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* from = block + C * q5_1::kBlockBytes;
    const __m256i high = _mm256_and_si256(bytes_of_bits(load_u32(from + 4)), _mm256_set1_epi8(16));
    return _mm256_or_si256(nibbles(from + 8), high);
  }
};

}  // namespace
