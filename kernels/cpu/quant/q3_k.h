// Q3_K: 256 weights in 16 groups of 16, w = d * (scale - 32) * (q - 4).
//   high bits of q in 32 bytes, low two bits in 64 bytes, 6-bit scale[16] in 12 bytes, f16 d
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q3_k : GgufOrder<256, 110> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const uint8_t* packed = from + 96;
    const float d = load_f16(from + 108);
    for (uint32_t group = 0; group < 16; ++group) {
      const uint32_t low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
      const uint32_t high = (packed[8 + group % 4] >> (group / 4 * 2)) & 3;
      const float scale = d * float(int(low | (high << 4)) - 32);
      const uint8_t* q = from + 32 + group / 8 * 32 + group % 2 * 16;
      const uint8_t* high_bits = from + group % 2 * 16;
      const uint32_t shift = group % 8 / 2 * 2, bit = group / 2;
      for (uint32_t i = 0; i < 16; ++i) {
        const int value = int((q[i] >> shift) & 3) + int((high_bits[i] >> bit) & 1) * 4 - 4;
        out[group * 16 + i] = scale * float(value);
      }
    }
  }
};

}  // namespace
