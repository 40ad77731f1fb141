// IQ2_XS: 256 weights in 16 groups of 16, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// two points of 8 weights.
//   f16 d, uint16[32] of 9 bits of point and 7 signs, 4-bit scale[16], the first low
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq2XsPoints[512] = {
#include "kernels/tables/iq2_xs_grid.inc"
};

struct iq2_xs : GgufOrder<256, 74> {
  static constexpr auto kGrid = iq_grid<8>(kIq2XsPoints, {8, 25, 43});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t j = 0; j < 32; ++j) {
      const uint32_t q = load_u16(from + 2 + j * 2);
      const float scale = d * (0.5f + float((from[66 + j / 4] >> j / 2 % 2 * 4) & 15)) * 0.25f;
      const int8_t* point = kGrid.point[q & 511];
      const uint32_t signs = even_signs(q >> 9);
      for (uint32_t i = 0; i < 8; ++i) out[j * 8 + i] = with_sign(scale * float(point[i]), signs, i);
    }
  }
};

}  // namespace
