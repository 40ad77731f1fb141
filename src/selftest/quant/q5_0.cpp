#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t q = bits_at(block, 6 + i % 16, i / 16 * 4, 4) + 16 * bits_at(block, 2 + i / 8, i % 8, 1);
  return half_at(block) * (float(q) - 16);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 9.2); }

extern const Quant quant_q5_0 = {"q5_0", 32, 22, weight, resize};

}  // namespace greta::reference
