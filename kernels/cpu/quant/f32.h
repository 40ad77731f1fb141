// F32: the value itself.
#pragma once
#include "kernels/cpu/block_order.h"

namespace {

struct f32 : GgufOrder<1, 4> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    __builtin_memcpy(out, at(weight, n, depth, block), 4);
  }
  static inline void encode(float value, uint8_t* out) { __builtin_memcpy(out, &value, 4); }
};

}  // namespace
