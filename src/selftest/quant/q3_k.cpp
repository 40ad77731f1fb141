#include "selftest/quant/quant.h"

namespace greta::reference {

// 32 bytes of high bits, 64 of low bits, 12 of scales, d.
static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t in_half = i % 128, group = i / 16;
  const uint32_t low = bits_at(block, 32 + i / 128 * 32 + in_half % 32, in_half / 32 * 2, 2);
  const uint32_t high = bits_at(block, i % 32, i / 32, 1);
  const uint32_t scale_low = bits_at(block, 96 + group % 8, group / 8 * 4, 4);
  const uint32_t scale_high = bits_at(block, 104 + group % 4, group / 4 * 2, 2);
  const int q = int(low + 4 * high) - 4, scale = int(scale_low + 16 * scale_high) - 32;
  const float step = half_at(block + 108) * float(scale);
  return step * float(q);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block + 108, size / 42); }

extern const Quant quant_q3_k = {"q3_k", 256, 110, weight, resize};

}  // namespace greta::reference
