#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  return half_at(block + 64) * (float(bits_at(block, i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2)) - 1);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block + 64, size / 1.2); }

extern const Quant quant_tq2_0 = {"tq2_0", 256, 66, weight, resize};

}  // namespace greta::reference
