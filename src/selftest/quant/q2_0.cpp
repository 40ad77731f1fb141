#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  return half_at(block) * (float(bits_at(block, 2 + i / 4, i % 4 * 2, 2)) - 1);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 1.2); }

extern const Quant quant_q2_0 = {"q2_0", 64, 18, weight, resize};

}  // namespace greta::reference
