#include "selftest/quant/quant.h"

namespace greta::reference {

// 16 bytes of scales, 64 of weights, d, dmin.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t in_half = i % 128;
  const uint32_t q = bits_at(block, 16 + i / 128 * 32 + in_half % 32, in_half / 32 * 2, 2);
  const float scale = half_at(block + 80) * float(bits_at(block, i / 16, 0, 4));
  const float min = half_at(block + 82) * float(bits_at(block, i / 16, 4, 4));
  const float product = scale * float(q);
  return product - min;
}

static void resize(uint8_t* block, double size, Random&) {
  put_half(block + 80, size / 8);
  put_half(block + 82, 1.5 * size / 8);  // the mean of q: weights have none
}

extern const Quant quant_q2_k = {"q2_k", 256, 84, weight, resize};

}  // namespace greta::reference
