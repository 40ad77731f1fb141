#include "selftest/quant/k4.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  return k4_value(block, i / 32, bits_at(block, 16 + i / 64 * 32 + i % 32, i % 64 / 32 * 4, 4));
}

static void resize(uint8_t* block, double size, Random&) {
  put_half(block, size / 200);
  put_half(block + 2, 7.5 * size / 200);  // the mean of q: weights have none
}

extern const Quant quant_q4_k = {"q4_k", 256, 144, weight, resize};

}  // namespace greta::reference
