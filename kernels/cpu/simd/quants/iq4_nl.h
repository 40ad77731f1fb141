// IQ4_NL (quant/iq4_nl.h): 8 blocks of 32 are taken as one of 256; the values are signed.
// With AVX-512, few tokens meet it as avx512vnni/iq4_nl.h says.
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * iq4_nl::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 0, kMost = 0;

  static inline Scales<32> scales(const uint8_t* block) {
    return scales_only(eight_halves<iq4_nl::kBlockBytes>(block));
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    return look_up(iq4_nl::kValues, nibbles(block + C * iq4_nl::kBlockBytes + 2));
  }
};

}  // namespace
