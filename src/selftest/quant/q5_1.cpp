#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t q = bits_at(block, 8 + i % 16, i / 16 * 4, 4) + 16 * bits_at(block, 4 + i / 8, i % 8, 1);
  const float product = half_at(block) * float(q);
  return product + half_at(block + 2);
}

static void resize(uint8_t* block, double size, Random&) {
  put_half(block, size / 9.2);
  put_half(block + 2, -15.5 * size / 9.2);  // the mean of q: weights have none
}

extern const Quant quant_q5_1 = {"q5_1", 32, 24, weight, resize};

}  // namespace greta::reference
