#include "selftest/quant/quant.h"

namespace greta::reference {

// Little-endian: the two bytes are the upper ones of a float32.
static float weight(const uint8_t* block, uint32_t) {
  const uint8_t bytes[4] = {0, 0, block[0], block[1]};
  float value;
  memcpy(&value, bytes, 4);
  return value;
}

static void resize(uint8_t* block, double size, Random& random) {
  const float value = float(size * gaussian(random));
  memcpy(block, reinterpret_cast<const uint8_t*>(&value) + 2, 2);
}

extern const Quant quant_bf16 = {"bf16", 1, 2, weight, resize};

}  // namespace greta::reference
