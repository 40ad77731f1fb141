// TQ2_0 (quant/tq2_0.h).
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = tq2_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 1, kMost = 3;

  static inline Scales<32> scales(const uint8_t* block) { return scales_only(half_of(block + 64)); }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + C / 4 * 32));
    return _mm256_and_si256(_mm256_srli_epi16(bytes, C % 4 * 2), _mm256_set1_epi8(3));
  }
};

}  // namespace
