// IQ2_S: 256 weights in 16 groups of 16, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// two points of 8 weights.
//   f16 d, low 8 bits of point[32], 8 signs for each point in 32 bytes, high 2 bits of point[32] in 8 bytes,
//   4-bit scale[16]; the first is lowest
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/iq_grid.h"

namespace {

constexpr uint16_t kIq2SPoints[1024] = {
#include "kernels/tables/iq2_s_grid.inc"
};

struct iq2_s : GgufOrder<256, 82> {
  static constexpr auto kGrid = iq_grid<8>(kIq2SPoints, {8, 25, 43});

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t j = 0; j < 32; ++j) {
      const uint32_t high = (from[66 + j / 4] >> j % 4 * 2) & 3;
      const float scale = d * (0.5f + float((from[74 + j / 4] >> j / 2 % 2 * 4) & 15)) * 0.25f;
      const int8_t* point = kGrid.point[from[2 + j] | high << 8];
      for (uint32_t i = 0; i < 8; ++i) out[j * 8 + i] = with_sign(scale * float(point[i]), from[34 + j], i);
    }
  }
};

}  // namespace
