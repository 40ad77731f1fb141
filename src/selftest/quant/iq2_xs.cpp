#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[512] = {
#include "kernels/tables/iq2_xs_grid.inc"
};

// d, 32 words of a point and 7 signs, 8 bytes of scales.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t j = i / 8;
  const uint32_t point = block[2 + 2 * j] + 256 * bits_at(block, 3 + 2 * j, 0, 1);
  const uint32_t scale = bits_at(block, 66 + i / 32, i / 16 % 2 * 4, 4);
  return iq2_scale(block, scale) * iq2_value(kPoints[point], i % 8) *
         even_sign(bits_at(block, 3 + 2 * j, 1, 7), i % 8);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 56); }

extern const Quant quant_iq2_xs = {"iq2_xs", 256, 74, weight, resize};

}  // namespace greta::reference
