// Q4_K: 256 weights in 8 groups of 32, w = d * scale * q - dmin * min.
//   f16 d, f16 dmin, 6-bit scales and minima in 12 bytes, 4-bit q[256] in 128 bytes: 32 bytes hold
//   one group in their low and the next in their high halves
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/quant/shared/scales_k4.h"

namespace {

struct q4_k : GgufOrder<256, 144> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from), dmin = load_f16(from + 2);
    for (uint32_t group = 0; group < 8; ++group) {
      uint8_t scale_bits, min_bits;
      scale_and_min(from + 4, group, &scale_bits, &min_bits);
      const float scale = d * float(scale_bits), min = dmin * float(min_bits);
      const uint8_t* q = from + 16 + group / 2 * 32;
      const uint32_t shift = group % 2 * 4;
      for (uint32_t i = 0; i < 32; ++i) out[group * 32 + i] = scale * float((q[i] >> shift) & 15) - min;
    }
  }
};

}  // namespace
