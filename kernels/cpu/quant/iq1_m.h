// IQ1_M: 256 weights in 16 groups of 16, w = d * (2 * scale + 1) * (grid value + delta), delta 1/8 or -1/8
// for each point of 8 weights; the grid of IQ1_S.
//   low 8 bits of point[32], 4 bits for each point (3 high bits of it, set for the negative delta), then
//   uint16[4], each with four 3-bit scales and, on top, 4 bits of the f16 d, the lowest first
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq1Points[2048] = {
#include "kernels/tables/iq1_grid.inc"
};

struct iq1_m : GgufOrder<256, 56> {
  static constexpr auto kGrid = iq_grid<8>(kIq1Points, {-1, 0, 1});

  static inline float load_d(const uint8_t* from) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 4; ++i) bits |= uint32_t(load_u16(from + 48 + i * 2) >> 12) << (i * 4);
    return f16_to_f32(uint16_t(bits));
  }

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_d(from);
    for (uint32_t j = 0; j < 32; ++j) {
      const uint32_t more = from[32 + j / 2] >> j % 2 * 4;
      const uint32_t scales = load_u16(from + 48 + j / 8 * 2);
      const float scale = d * float(2 * ((scales >> j / 2 % 4 * 3) & 7) + 1);
      const float delta = more & 8 ? -0.125f : 0.125f;
      const int8_t* point = kGrid.point[from[j] | (more & 7) << 8];
      for (uint32_t i = 0; i < 8; ++i) out[j * 8 + i] = scale * (float(point[i]) + delta);
    }
  }
};

}  // namespace
