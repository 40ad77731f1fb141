#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t i) { return half_at(block) * float(int8_t(block[2 + i])); }

static void resize(uint8_t* block, double size, Random&) { put_half(block, size / 74); }

extern const Quant quant_q8_0 = {"q8_0", 32, 34, weight, resize};

}  // namespace greta::reference
