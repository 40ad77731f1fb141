// TQ2_0: 256 weights of -1, 0, 1 times one scale, w = d * (q - 1).
//   2-bit q[256] in 64 bytes, as in Q2_K: weight 32 j + i of a half in bits 2 j of its byte i; f16 d
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct tq2_0 : GgufOrder<256, 66> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from + 64);
    for (uint32_t group = 0; group < 8; ++group)
      for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t q = (from[group / 4 * 32 + i] >> group % 4 * 2) & 3;
        out[group * 32 + i] = float(int(q) - 1) * d;
      }
  }
};

}  // namespace
