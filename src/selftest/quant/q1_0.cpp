#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  return half_at(block) * (2 * float(bits_at(block, 2 + i / 8, i % 8, 1)) - 1);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size); }

extern const Quant quant_q1_0 = {"q1_0", 128, 18, weight, resize};

}  // namespace greta::reference
