// Q2_K: 256 weights in 16 groups of 16, w = d * scale * q - dmin * min.
//   scales[16] (scale low, min high), 2-bit q[256] in 64 bytes, f16 d, f16 dmin
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q2_k : GgufOrder<256, 84> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from + 80), dmin = load_f16(from + 82);
    for (uint32_t group = 0; group < 16; ++group) {
      const float scale = d * float(from[group] & 15), min = dmin * float(from[group] >> 4);
      // A half of 128 weights has 32 bytes; its groups of 32 differ by the shift.
      const uint8_t* q = from + 16 + group / 8 * 32 + group % 2 * 16;
      const uint32_t shift = group % 8 / 2 * 2;
      for (uint32_t i = 0; i < 16; ++i) out[group * 16 + i] = scale * float((q[i] >> shift) & 3) - min;
    }
  }
};

}  // namespace
