// Q4_1 (quant/q4_1.h): 8 blocks of 32 are taken as one of 256.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * q4_1::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0, kMost = 15;

  static inline Scales<32> scales(const uint8_t* block) {
    return {{eight_halves<q4_1::kBlockBytes>(block)}, {negative(eight_halves<q4_1::kBlockBytes>(block + 2))}};
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    return nibbles(block + C * q4_1::kBlockBytes + 4);
  }
};

}  // namespace
