#include "selftest/quant/iq.h"

namespace greta::reference {

static constexpr uint16_t kPoints[256] = {
#include "kernels/tables/iq2_xxs_grid.inc"
};

// d, then 8 bytes for each 32: four points; four times 7 signs, 4 bits of scale.
static float weight(const uint8_t* block, uint32_t i) {
  const uint8_t* group = block + 2 + i / 32 * 8;
  const uint32_t j = i % 32 / 8, more = word_at(group + 4);
  return iq2_scale(block, more >> 28) * iq2_value(kPoints[group[j]], i % 8) *
         even_sign((more >> 7 * j) & 127, i % 8);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 53); }

extern const Quant quant_iq2_xxs = {"iq2_xxs", 256, 66, weight, resize};

}  // namespace greta::reference
