// MXFP4: 32 4-bit floats share a power of two, w = 2^(e - 127) * value[q]; the table has doubled values.
//   uint8 e, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
// Source: OCP Microscaling Formats (MX) 1.0; e = 255, NaN there, is a number in GGUF files.
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct mxfp4 : GgufOrder<32, 17> {
  static constexpr int8_t kValues[16] = {
#include "kernels/tables/e2m1_values.inc"
  };
  // 2^(e - 128)
  static inline float scale(uint32_t e) { return float_of(e < 2 ? 0x200000u << e : (e - 1) << 23); }

  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = scale(from[0]);
    for (uint32_t i = 0; i < 16; ++i) {
      out[i] = float(kValues[from[1 + i] & 15]) * d;
      out[i + 16] = float(kValues[from[1 + i] >> 4]) * d;
    }
  }
};

}  // namespace
