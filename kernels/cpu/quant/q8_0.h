// Q8_0: 32 weights share one scale, w = d * q.
//   f16 d, int8 q[32]
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q8_0 : GgufOrder<32, 34> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t i = 0; i < 32; ++i) out[i] = float(int8_t(from[2 + i])) * d;
  }
};

}  // namespace
