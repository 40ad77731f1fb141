// Q4_1: 32 weights share a scale and a minimum, w = d * q + m.
//   f16 d, f16 m, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q4_1 : GgufOrder<32, 20> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from), m = load_f16(from + 2);
    for (uint32_t i = 0; i < 16; ++i) {
      out[i] = float(from[4 + i] & 15) * d + m;
      out[i + 16] = float(from[4 + i] >> 4) * d + m;
    }
  }
};

}  // namespace
