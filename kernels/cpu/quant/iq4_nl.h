// IQ4_NL: 32 weights share one scale, w = d * value[q]: 16 values that lie closer around zero.
//   f16 d, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct iq4_nl : GgufOrder<32, 18> {
  static constexpr int8_t kValues[16] = {
#include "kernels/tables/iq4_values.inc"
  };
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t i = 0; i < 16; ++i) {
      out[i] = float(kValues[from[2 + i] & 15]) * d;
      out[i + 16] = float(kValues[from[2 + i] >> 4]) * d;
    }
  }
};

}  // namespace
