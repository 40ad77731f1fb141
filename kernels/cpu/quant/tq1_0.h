// TQ1_0: 256 weights of -1, 0, 1 times one scale, w = d * (q - 1). A byte holds 5 (the last four bytes 4)
// values of three as the fraction byte / 256 in base three, the first digit highest.
//   32 bytes of weights 32 j + i (byte i, digit j), 16 of 160 + 16 j + i, 4 of 240 + 4 j + i, f16 d
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct tq1_0 : GgufOrder<256, 54> {
  static inline void digits(const uint8_t* from, uint32_t bytes, uint32_t digits, float d, float* out) {
    uint32_t power = 1;
    for (uint32_t j = 0; j < digits; ++j, power *= 3)
      for (uint32_t i = 0; i < bytes; ++i) {
        const uint32_t fraction = (from[i] * power) & 255;
        out[j * bytes + i] = float(int(fraction * 3 >> 8) - 1) * d;
      }
  }
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from + 52);
    digits(from, 32, 5, d, out);
    digits(from + 32, 16, 5, d, out + 160);
    digits(from + 48, 4, 4, d, out + 240);
  }
};

}  // namespace
