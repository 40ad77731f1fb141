// IQ2_XXS: 256 weights in 8 groups of 32, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// four points of 8 weights.
//   f16 d, then for each group: uint8 point[4], uint32 of four times 7 signs and the scale in its top 4 bits
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq2XxsPoints[256] = {
#include "kernels/tables/iq2_xxs_grid.inc"
};

struct iq2_xxs : GgufOrder<256, 66> {
  static constexpr auto kGrid = iq_grid<8>(kIq2XxsPoints, {8, 25, 43});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t group = 0; group < 8; ++group) {
      const uint8_t* q = from + 2 + group * 8;
      const uint32_t more = load_u32(q + 4);
      const float scale = d * (0.5f + float(more >> 28)) * 0.25f;
      for (uint32_t j = 0; j < 4; ++j) {
        const int8_t* point = kGrid.point[q[j]];
        const uint32_t signs = even_signs((more >> 7 * j) & 127);
        for (uint32_t i = 0; i < 8; ++i)
          out[group * 32 + j * 8 + i] = with_sign(scale * float(point[i]), signs, i);
      }
    }
  }
};

}  // namespace
