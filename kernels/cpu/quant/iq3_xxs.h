// IQ3_XXS: 256 weights in 8 groups of 32, w = d * (0.5 + scale) / 2 * grid value, with a sign. A group is
// eight points of 4 weights.
//   f16 d, uint8 point[64], then for each group a uint32 of four times 7 signs and the scale in its top 4
//   bits
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq3XxsPoints[256] = {
#include "kernels/tables/iq3_xxs_grid.inc"
};

struct iq3_xxs : GgufOrder<256, 98> {
  static constexpr auto kGrid = iq_grid<4>(kIq3XxsPoints, {4, 12, 20, 28, 36, 44, 52, 62});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t group = 0; group < 8; ++group) {
      const uint32_t more = load_u32(from + 66 + group * 4);
      const float scale = d * (0.5f + float(more >> 28)) * 0.5f;
      for (uint32_t j = 0; j < 8; ++j) {
        const int8_t* point = kGrid.point[from[2 + group * 8 + j]];
        const uint32_t signs = even_signs((more >> 7 * (j / 2)) & 127);
        for (uint32_t i = 0; i < 4; ++i)
          out[group * 32 + j * 4 + i] = with_sign(scale * float(point[i]), signs, j % 2 * 4 + i);
      }
    }
  }
};

}  // namespace
