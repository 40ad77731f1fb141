#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[1024] = {
#include "kernels/tables/iq2_s_grid.inc"
};

// d, 32 bytes of points, 32 of signs, 8 of the points' upper bits, 8 of scales.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t point = block[2 + i / 8] + 256 * bits_at(block, 66 + i / 32, i % 32 / 8 * 2, 2);
  const float value =
      iq2_scale(block, bits_at(block, 74 + i / 32, i / 16 % 2 * 4, 4)) * iq2_value(kPoints[point], i % 8);
  return bits_at(block, 34 + i / 8, i % 8, 1) ? -value : value;
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 56); }

extern const Quant quant_iq2_s = {"iq2_s", 256, 82, weight, resize};

}  // namespace greta::reference
