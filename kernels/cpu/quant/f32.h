// F32: the value itself.
#pragma once
#include "kernels/cpu/block_order.h"

namespace {

struct f32 : GgufOrder<1, 4> {
  // `count` values that lie one after the other.
  static inline void values(const uint8_t* __restrict from, uint32_t count, float* __restrict out) {
    __builtin_memcpy(out, from, count * sizeof(float));
  }
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    values(at(weight, n, depth, block), 1, out);
  }
  static inline void encode(const float* x, uint32_t count, uint8_t* out) {
    __builtin_memcpy(out, x, count * sizeof(float));
  }
};

}  // namespace
