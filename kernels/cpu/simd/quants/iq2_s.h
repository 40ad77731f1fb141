// IQ2_S (quant/iq2_s.h): q is the value plus 43.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq2_s::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 43, kMost = 86;

  static inline Scales<16> scales(const uint8_t* block) { return iq2_scales(block, block + 74); }

  static inline int64_t point(const uint8_t* q, uint32_t high, int j) {
    return point_of(iq2_s::kGrid, q[j] | ((high >> 2 * j) & 3) << 8);
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const uint8_t* q = block + 2 + C * 4;
    const uint32_t high = block[66 + C];
    const __m256i values =
        _mm256_setr_epi64x(point(q, high, 0), point(q, high, 1), point(q, high, 2), point(q, high, 3));
    return signed_bytes(values, load_u32(block + 34 + C * 4), kZero);
  }
};

}  // namespace
