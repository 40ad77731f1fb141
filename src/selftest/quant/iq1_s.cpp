#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[2048] = {
#include "kernels/tables/iq1_grid.inc"
};

// d, 32 bytes of points, then for each 32 weights four times 3 upper bits, 3 bits of scale, a sign of delta.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t more = block[34 + i / 32 * 2] + 256u * block[35 + i / 32 * 2];
  const uint32_t point = block[2 + i / 8] + 256 * ((more >> i % 32 / 8 * 3) % 8);
  const float scale = half_at(block) * (2 * float((more >> 12) % 8) + 1);
  return scale * (iq1_value(kPoints[point], i % 8) + (more >> 15 ? -0.125f : 0.125f));
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 7.2); }

extern const Quant quant_iq1_s = {"iq1_s", 256, 50, weight, resize};

}  // namespace greta::reference
