#include "selftest/quant/quant.h"

namespace greta::reference {

static constexpr uint16_t kPoints[512] = {
#include "kernels/tables/iq3_s_grid.inc"
};

// d, 64 bytes of points of 4, 8 of their upper bits, 32 of signs, 4 of scales.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t j = i / 4, point = block[2 + j] + 256 * bits_at(block, 66 + j / 8, j % 8, 1);
  const float scale = half_at(block) * (1 + 2 * float(bits_at(block, 106 + i / 64, i / 32 % 2 * 4, 4)));
  const float value = scale * (1 + 2 * float((kPoints[point] >> i % 4 * 3) & 7));
  return bits_at(block, 74 + i / 8, i % 8, 1) ? -value : value;
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 140); }

extern const Quant quant_iq3_s = {"iq3_s", 256, 110, weight, resize};

}  // namespace greta::reference
