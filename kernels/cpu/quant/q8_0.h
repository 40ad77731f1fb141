// Q8_0: 32 weights share one scale, w = d * q.
//   f16 d, int8 q[32]
#pragma once
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/half.h"

namespace {

struct q8_0 : GgufOrder<32, 34> {
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = at(weight, n, depth, block);
    const float d = load_f16(from);
    for (uint32_t i = 0; i < 32; ++i) out[i] = float(int8_t(from[2 + i])) * d;
  }

  // The first `count` values of blocks that lie one after the other.
  static inline void values(const uint8_t* from, uint32_t count, float* out) {
    for (uint32_t i = 0; i < count; ++i)
      out[i] = float(int8_t(from[i / 32 * 34 + 2 + i % 32])) * load_f16(from + i / 32 * 34);
  }
  // Whole blocks: d is the largest of 32 magnitudes / 127, rounded to a half after q is found.
  // Where x is not finite, d is not either.
  static inline void encode(const float* x, uint32_t count, uint8_t* out) {
    for (uint32_t at = 0; at < count; at += 32, out += 34) {
      uint32_t max = 0;
      for (uint32_t i = 0; i < 32; ++i)
        max = magnitude_bits(x[at + i]) > max ? magnitude_bits(x[at + i]) : max;
      const float d = float_of(max) / 127.f, inverse = d > 0 ? 1.f / d : 0.f;
      store_u16(out, f32_to_f16(d));
      for (uint32_t i = 0; i < 32; ++i) out[2 + i] = uint8_t(round_even(x[at + i] * inverse));
    }
  }
};

}  // namespace
