// IQ2_XS (quant/iq2_xs.h): q is the value plus 43.
#pragma once
#include "kernels/cpu/simd/quants/grid.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = iq2_xs::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 43, kMost = 86;

  static inline Scales<16> scales(const uint8_t* block) { return iq2_scales(block, block + 66); }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    uint32_t q[4];
    for (int j = 0; j < 4; ++j) q[j] = load_u16(block + 2 + C * 8 + j * 2);
    const __m256i values =
        _mm256_setr_epi64x(point_of(iq2_xs::kGrid, q[0] & 511), point_of(iq2_xs::kGrid, q[1] & 511),
                           point_of(iq2_xs::kGrid, q[2] & 511), point_of(iq2_xs::kGrid, q[3] & 511));
    const uint32_t signs = q[0] >> 9 | q[1] >> 9 << 8 | q[2] >> 9 << 16 | q[3] >> 9 << 24;
    return signed_bytes(values, four_even_signs(signs), kZero);
  }
};

}  // namespace
