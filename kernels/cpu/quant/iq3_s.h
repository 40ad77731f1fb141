// IQ3_S: 256 weights in 8 groups of 32, w = d * (1 + 2 * scale) * grid value, with a sign. A group is eight
// points of 4 weights.
//   f16 d, low 8 bits of point[64], high bit of point[64] in 8 bytes, sign of each weight in 32 bytes,
//   4-bit scale[8]; the first is lowest
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq3SPoints[512] = {
#include "kernels/tables/iq3_s_grid.inc"
};

struct iq3_s : GgufOrder<256, 110> {
  static constexpr auto kGrid = iq_grid<4>(kIq3SPoints, {1, 3, 5, 7, 9, 11, 13, 15});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t j = 0; j < 64; ++j) {
      const uint32_t high = (from[66 + j / 8] >> j % 8) & 1;
      const float scale = d * float(1 + 2 * ((from[106 + j / 16] >> j / 8 % 2 * 4) & 15));
      const int8_t* point = kGrid.point[from[2 + j] | high << 8];
      for (uint32_t i = 0; i < 4; ++i)
        out[j * 4 + i] = with_sign(scale * float(point[i]), from[74 + j / 2], j % 2 * 4 + i);
    }
  }
};

}  // namespace
