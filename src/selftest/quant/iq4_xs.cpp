#include "selftest/quant/quant.h"

namespace greta::reference {

static constexpr float kValues[16] = {
#include "kernels/tables/iq4_values.inc"
};

// d, 2 bytes of high scale bits, 4 of low ones, 128 of weights.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t group = i / 32, in_group = i % 32;
  const uint32_t low = bits_at(block, 4 + group / 2, group % 2 * 4, 4);
  const uint32_t high = bits_at(block, 2 + group / 4, group % 4 * 2, 2);
  const float step = half_at(block) * (float(low + 16 * high) - 32);
  return step * kValues[bits_at(block, 8 + group * 16 + in_group % 16, in_group / 16 * 4, 4)];
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 1250); }

extern const Quant quant_iq4_xs = {"iq4_xs", 256, 136, weight, resize};

}  // namespace greta::reference
