// F16: IEEE half precision.
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct f16 : GgufOrder<1, 2> {
  // `count` values that lie one after the other.
  static inline void values(const uint8_t* __restrict from, uint32_t count, float* __restrict out) {
    for (uint64_t i = 0; i < count; ++i) out[i] = load_f16(from + 2 * i);
  }
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    values(at(weight, n, depth, block), 1, out);
  }
  static inline void encode(float value, uint8_t* out) {
    const uint16_t half = f32_to_f16(value);
    __builtin_memcpy(out, &half, 2);
  }
};

}  // namespace
