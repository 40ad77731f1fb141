// Q2_0: 64 weights share one scale, w = d * (q - 1).
//   f16 d, 2-bit q[64]: byte i holds q[4 i] .. q[4 i + 3], the first lowest
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q2_0 : GgufOrder<64, 18> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t i = 0; i < 64; ++i) out[i] = float(int((from[2 + i / 4] >> i % 4 * 2) & 3) - 1) * d;
  }
};

}  // namespace
