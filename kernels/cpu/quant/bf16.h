// BF16: the upper half of a float32.
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct bf16 : GgufOrder<1, 2> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    *out = load_bf16(at(weight, n, depth, block));
  }
};

}  // namespace
