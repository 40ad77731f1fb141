// Q6_K: 256 weights in 16 groups of 16, w = d * scale * (q - 32).
//   low four bits in 128 bytes, high two in 64 bytes, int8 scale[16], f16 d. A half of 128 weights
//   has 64 low and 32 high bytes: weight 32 j + i takes its low bits from byte 32 (j % 2) + i, low
//   half for j < 2, and its high bits from bits 2 j of byte i
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q6_k : GgufOrder<256, 210> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from + 208);
    for (uint32_t group = 0; group < 16; ++group) {
      const uint32_t half = group / 8, quarter = group % 8 / 2, i0 = group % 2 * 16;
      const uint8_t* low = from + half * 64 + quarter % 2 * 32 + i0;
      const uint8_t* high = from + 128 + half * 32 + i0;
      const float scale = d * float(int8_t(from[192 + group]));
      for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t q = ((low[i] >> (quarter / 2 * 4)) & 15u) | (((high[i] >> (quarter * 2)) & 3u) << 4);
        out[group * 16 + i] = scale * float(int(q) - 32);
      }
    }
  }
};

}  // namespace
