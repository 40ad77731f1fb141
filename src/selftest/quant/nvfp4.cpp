#include <cmath>

#include "selftest/quant/quant.h"

namespace greta::reference {

// An 8-bit float: 4 bits of exponent, 3 of mantissa. The uppermost bit is ignored.
static float e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  if (bits == 0x7f) return 0;  // NaN in the format
  return exponent ? std::ldexp(8 + float(mantissa), exponent - 10) : std::ldexp(float(mantissa), -9);
}

static float weight(const uint8_t* block, uint32_t i) {
  const uint32_t group = i / 16, in_group = i % 16;
  return e4m3(block[group]) * e2m1_value(bits_at(block, 4 + group * 8 + in_group % 8, in_group / 8 * 4, 4));
}

// The scale nearest to the size, which has no sign here.
static void resize(uint8_t* block, double size, Random&) {
  uint8_t best = 0;
  for (uint8_t bits = 0; bits < 0x7f; ++bits)
    if (std::fabs(e4m3(bits) - std::fabs(size) / 2.7) < std::fabs(e4m3(best) - std::fabs(size) / 2.7))
      best = bits;
  memset(block, best, 4);
}

extern const Quant quant_nvfp4 = {"nvfp4", 64, 36, weight, resize};

}  // namespace greta::reference
