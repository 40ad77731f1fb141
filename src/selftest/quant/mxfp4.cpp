#include <algorithm>
#include <cmath>

#include "selftest/quant/quant.h"

namespace greta::reference {

// A 4-bit float: sign, 2 bits of exponent, 1 of mantissa.
static float e2m1(uint32_t bits) {
  const int exponent = (bits >> 1) & 3, mantissa = bits & 1;
  const float size = exponent ? std::ldexp(1 + 0.5f * float(mantissa), exponent - 1) : 0.5f * float(mantissa);
  return bits & 8 && size > 0 ? -size : size;  // no negative zero
}

static float weight(const uint8_t* block, uint32_t i) {
  return std::ldexp(e2m1(bits_at(block, 1 + i % 16, i / 16 * 4, 4)), int(block[0]) - 127);
}

// Powers of two have neither zero nor sign.
static void resize(uint8_t* block, double size, Random&) {
  const double step = std::fabs(size) / 2.7;
  block[0] = step > 0 ? uint8_t(std::clamp(std::lround(std::log2(step)) + 127, 0l, 254l)) : 0;
  if (size == 0) memset(block + 1, 0, 16);
}

extern const Quant quant_mxfp4 = {"mxfp4", 32, 17, weight, resize};

}  // namespace greta::reference
