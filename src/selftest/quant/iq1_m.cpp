#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[2048] = {
#include "kernels/tables/iq1_grid.inc"
};

// 32 bytes of points, 16 of (3 upper bits, sign of delta) for each point, 8 of scales and, in the upper
// nibbles of its four words, d.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t point = block[i / 8] + 256 * bits_at(block, 32 + i / 16, i / 8 % 2 * 4, 3);
  const uint32_t words = i / 64 * 2 + 48, scales = block[words] + 256u * block[words + 1];
  uint8_t d[2];
  for (uint32_t k = 0; k < 2; ++k) d[k] = uint8_t((block[49 + 4 * k] >> 4) + (block[51 + 4 * k] & 0xf0));
  const float scale = half_at(d) * (2 * float((scales >> i / 16 % 4 * 3) % 8) + 1);
  const float delta = bits_at(block, 32 + i / 16, i / 8 % 2 * 4 + 3, 1) ? -0.125f : 0.125f;
  return scale * (iq1_value(kPoints[point], i % 8) + delta);
}

static void resize(uint8_t* block, double size, Random&) {
  const uint32_t d = half_bits(size / 7.2);
  for (uint32_t k = 0; k < 4; ++k)
    block[49 + 2 * k] = uint8_t((block[49 + 2 * k] & 15) | ((d >> 4 * k) & 15) << 4);
}

extern const Quant quant_iq1_m = {"iq1_m", 256, 56, weight, resize};

}  // namespace greta::reference
