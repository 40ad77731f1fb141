#include "selftest/quant/quant.h"

namespace greta::reference {

static constexpr float kValues[16] = {
#include "kernels/tables/iq4_values.inc"
};

static float weight(const uint8_t* block, uint32_t i) {
  return half_at(block) * kValues[bits_at(block, 2 + i % 16, i / 16 * 4, 4)];
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 67); }

extern const Quant quant_iq4_nl = {"iq4_nl", 32, 18, weight, resize};

}  // namespace greta::reference
