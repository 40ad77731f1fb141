#include <algorithm>
#include <cmath>

#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) {
  return std::ldexp(e2m1_value(bits_at(block, 1 + i % 16, i / 16 * 4, 4)), int(block[0]) - 127);
}

// Powers of two have neither zero nor sign.
static void resize(uint8_t* block, double size, Random&) {
  const double step = std::fabs(size) / 2.7;
  block[0] = step > 0 ? uint8_t(std::clamp(std::lround(std::log2(step)) + 127, 0l, 254l)) : 0;
  if (size == 0) memset(block + 1, 0, 16);
}

extern const Quant quant_mxfp4 = {"mxfp4", 32, 17, weight, resize};

}  // namespace greta::reference
