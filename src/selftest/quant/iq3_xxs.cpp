#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[256] = {
#include "kernels/tables/iq3_xxs_grid.inc"
};

// d, 64 points of 4, then 4 bytes for each 32: four times 7 signs, 4 bits of scale.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t more = word_at(block + 66 + i / 32 * 4),
                 level = (kPoints[block[2 + i / 4]] >> i % 4 * 3) & 7;
  const float scale = half_at(block) * (0.5f + float(more >> 28));
  const float value = level < 7 ? 4 + 8 * float(level) : 62;
  return scale / 2 * value * even_sign((more >> 7 * (i % 32 / 8)) & 127, i % 8);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 143); }

extern const Quant quant_iq3_xxs = {"iq3_xxs", 256, 98, weight, resize};

}  // namespace greta::reference
