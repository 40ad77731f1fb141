// NVFP4: 64 4-bit floats in 4 groups of 16, w = scale * value[q]; the table has doubled values, so the
// scales are halved.
//   8-bit float scale[4] (no sign, 4 bits of exponent, 3 of mantissa), 4-bit q[64]: 8 bytes for each group,
//   byte i with q[i] low and q[i + 8] high
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct nvfp4 : GgufOrder<64, 36> {
  static constexpr int8_t kValues[16] = {
#include "kernels/tables/e2m1_values.inc"
  };
  // Half of a scale; 0x7f, NaN in the format, stands for 0.
  static inline float scale(uint32_t bits) {
    const uint32_t exponent = (bits >> 3) & 15, mantissa = bits & 7;
    if (bits == 0x7f) return 0;
    if (exponent == 0) return float(mantissa) * 0x1p-10f;
    return float_of((exponent + 127 - 8) << 23 | mantissa << 20);
  }

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    for (uint32_t group = 0; group < 4; ++group) {
      const float d = scale(from[group]);
      const uint8_t* q = from + 4 + group * 8;
      for (uint32_t i = 0; i < 8; ++i) {
        out[group * 16 + i] = d * float(kValues[q[i] & 15]);
        out[group * 16 + 8 + i] = d * float(kValues[q[i] >> 4]);
      }
    }
  }
};

}  // namespace
