// IQ1_S: 256 weights in 8 groups of 32, w = d * (2 * scale + 1) * (grid value + delta), delta 1/8 or -1/8.
// A group is four points of 8 weights.
//   f16 d, low 8 bits of point[32], then for each group a uint16: high 3 bits of its points, 3 bits of scale,
//   set for the negative delta
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq1Points[2048] = {
#include "kernels/tables/iq1_grid.inc"
};

struct iq1_s : GgufOrder<256, 50> {
  static constexpr auto kGrid = iq_grid<8>(kIq1Points, {-1, 0, 1});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t j = 0; j < 32; ++j) {
      const uint32_t more = load_u16(from + 34 + j / 4 * 2);
      const float scale = d * float(2 * ((more >> 12) & 7) + 1), delta = more & 0x8000 ? -0.125f : 0.125f;
      const int8_t* point = kGrid.point[from[2 + j] | ((more >> j % 4 * 3) & 7) << 8];
      for (uint32_t i = 0; i < 8; ++i) out[j * 8 + i] = scale * (float(point[i]) + delta);
    }
  }
};

}  // namespace
