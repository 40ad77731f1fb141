#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t q = bits_at(block, 2 + i % 16, i / 16 * 4, 4);
  return half_at(block) * (float(q) - 8);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 4.6); }

extern const Quant quant_q4_0 = {"q4_0", 32, 18, weight, resize};

}  // namespace greta::reference
