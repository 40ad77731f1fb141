// Q5_0: 32 weights share one scale, w = d * (q - 16).
//   f16 d, uint32 high bits of q, low four bits of q[32]: byte i holds q[i] low and q[i + 16] high
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q5_0 : GgufOrder<32, 22> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    const uint32_t high = load_u32(from + 2);
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t byte = from[6 + i];
      out[i] = float(int((byte & 15) | ((high >> i) & 1) << 4) - 16) * d;
      out[i + 16] = float(int(byte >> 4 | ((high >> (i + 16)) & 1) << 4) - 16) * d;
    }
  }
};

}  // namespace
