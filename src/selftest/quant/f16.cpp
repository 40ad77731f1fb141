#include "selftest/quant/quant.h"

namespace greta::reference {

static float weight(const uint8_t* block, uint32_t) { return half_at(block); }

static void resize(uint8_t* block, double size, Random& random) { put_half(block, size * gaussian(random)); }

extern const Quant quant_f16 = {"f16", 1, 2, weight, resize};

}  // namespace greta::reference
