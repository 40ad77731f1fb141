// Stores results as float16 too, saturated, for the GEMM that reads them. What is not finite is stored as
// NaN, and nothing is stored where `halves` is null.
#pragma once
#include "kernels/hip/math.h"

DEVICE void store_half(GLOBAL byte* halves, uint at, float y) {
  if (halves) ((GLOBAL float16_t*)halves)[at] = float16_t(in_half_range(y));
}

// Stores values at .. at + 3; `at` is a multiple of 4.
DEVICE void store_halves(GLOBAL byte* halves, uint at, vec4 y) {
  typedef float16_t Four __attribute__((ext_vector_type(4)));
  const vec4 saturated = {in_half_range(y.x), in_half_range(y.y), in_half_range(y.z), in_half_range(y.w)};
  if (halves) ((GLOBAL Four*)halves)[at / 4] = __builtin_convertvector(saturated, Four);
}
