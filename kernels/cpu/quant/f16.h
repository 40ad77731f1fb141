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
  static inline void encode(const float* x, uint32_t count, uint8_t* out) {
    for (uint64_t i = 0; i < count; ++i) store_u16(out + 2 * i, f32_to_f16(x[i]));
  }
};

}  // namespace
