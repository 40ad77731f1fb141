// F16: IEEE half precision.
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct f16 : GgufOrder<1, 2> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    *out = load_f16(at(weight, n, depth, block));
  }
  static inline void encode(float value, uint8_t* out) {
    const uint16_t half = f32_to_f16(value);
    __builtin_memcpy(out, &half, 2);
  }
};

}  // namespace
