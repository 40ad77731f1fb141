#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t) {
  float value;
  memcpy(&value, block, 4);
  return value;
}

static void resize(uint8_t* block, double size, Random& random) {
  const float value = float(size * gaussian(random));
  memcpy(block, &value, 4);
}

extern const Quant quant_f32 = {"f32", 1, 4, weight, resize};

}  // namespace greta::reference
