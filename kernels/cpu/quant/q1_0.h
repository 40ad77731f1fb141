// Q1_0: 128 weights share one scale, w = d or -d.
//   f16 d, bits of 128 weights: set for d
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q1_0 : GgufOrder<128, 18> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t i = 0; i < 128; ++i) out[i] = (from[2 + i / 8] >> i % 8) & 1 ? d : -d;
  }
};

}  // namespace
