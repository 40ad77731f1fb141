// float32 to the activation format q8 (kernels/abi/q8.h), one row. Faster versions must give the
// same bytes.
#pragma once
#include "kernels/abi/q8.h"
#include "kernels/cpu/half.h"

namespace {

inline void q8_block(const float* x, int8_t* q, float* scale, int16_t* sums) {
  float max = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const float magnitude = float_of(bits_of(x[i]) & 0x7fffffffu);
    max = magnitude > max ? magnitude : max;
  }
  const float d = max / 127.f;
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
