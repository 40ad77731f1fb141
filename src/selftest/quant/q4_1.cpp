#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  const float product = half_at(block) * float(bits_at(block, 4 + i % 16, i / 16 * 4, 4));
  return product + half_at(block + 2);
}

static void resize(uint8_t* block, double size, Random&) {
  put_half(block, size / 4.6);
  put_half(block + 2, -7.5 * size / 4.6);  // the mean of q: weights have none
}

extern const Quant quant_q4_1 = {"q4_1", 32, 20, weight, resize};

}  // namespace greta::reference
