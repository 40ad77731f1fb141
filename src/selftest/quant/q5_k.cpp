#include "selftest/quant/k4.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t low = bits_at(block, 48 + i / 64 * 32 + i % 32, i % 64 / 32 * 4, 4);
  const uint32_t high = bits_at(block, 16 + i % 32, i / 32, 1);
  return k4_value(block, i / 32, low + 16 * high);
}

static void resize(uint8_t* block, double size, Random&) {
  put_half(block, size / 400);
  put_half(block + 2, 15.5 * size / 400);  // the mean of q: weights have none
}

extern const Quant quant_q5_k = {"q5_k", 256, 176, weight, resize};

}  // namespace greta::reference
