// float32 to the activation format q8 (kernels/abi/q8.h), one row. Faster versions must give the
// same bytes where x is finite. Where it is not, d is not either, and so no product with the block is.
#pragma once
#include "kernels/abi/q8.h"
#include "kernels/cpu/half.h"

namespace {

inline void q8_block(const float* x, int8_t* q, float* scale, int16_t* sums) {
  uint32_t max = 0;
  for (uint32_t i = 0; i < 32; ++i) max = magnitude_bits(x[i]) > max ? magnitude_bits(x[i]) : max;
  const float d = float_of(max) / 127.f;
  const float inverse = d > 0 ? 1.f / d : 0.f;
  *scale = d;
  for (uint32_t i = 0; i < 32; ++i) q[i] = int8_t(round_even(x[i] * inverse));
  for (uint32_t half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < 16; ++i) sum += q[half * 16 + i];
    sums[half] = int16_t(sum);
  }
}

inline void q8_row(const float* x, uint32_t depth, uint8_t* y) {
  int8_t* q = (int8_t*)y;
  float* scales = (float*)(y + q8_scales_at(depth));
  int16_t* sums = (int16_t*)(y + q8_sums_at(depth));
  for (uint32_t i = 0; i < depth / 32; ++i) q8_block(x + i * 32, q + i * 32, scales + i, sums + i * 2);
}

}  // namespace
