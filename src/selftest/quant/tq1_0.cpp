#include "selftest/quant/quant.h"

namespace greta::reference {

// Digit `j` of a byte as a fraction in base three: the first is the highest.
static uint32_t digit(uint32_t byte, uint32_t j) {
  for (; j; --j) byte = byte * 3 % 256;
  return byte * 3 / 256;
}

static float weight(const uint8_t* block, uint32_t i) {
  uint32_t q;
  if (i < 160)
    q = digit(block[i % 32], i / 32);
  else if (i < 240)
    q = digit(block[32 + i % 16], (i - 160) / 16);
  else
    q = digit(block[48 + i % 4], (i - 240) / 4);
  return half_at(block + 52) * (float(q) - 1);
}

static void resize(uint8_t* block, double size, Random&) { put_half(block + 52, size / 0.82); }

extern const Quant quant_tq1_0 = {"tq1_0", 256, 54, weight, resize};

}  // namespace greta::reference
