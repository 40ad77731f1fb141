#include "selftest/quant/quant.h"

namespace greta::reference {

// 128 bytes of low bits, 64 of high bits, 16 scales, d.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t half = i / 128, quarter = i % 128 / 32;
  const uint32_t low = bits_at(block, half * 64 + i % 64, quarter / 2 * 4, 4);
  const uint32_t high = bits_at(block, 128 + half * 32 + i % 32, quarter * 2, 2);
  const float step = half_at(block + 208) * float(int8_t(block[192 + i / 16]));
  return step * (float(low + 16 * high) - 32);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block + 208, size / 1300); }

extern const Quant quant_q6_k = {"q6_k", 256, 210, weight, resize};

}  // namespace greta::reference
