// Stores results as float16 too, saturated, for the GEMM that reads them. Nothing is stored where `halves` is
// null.
#pragma once
#include "kernels/hip/math.h"

DEVICE void store_half(GLOBAL byte* halves, uint at, float y) {
  if (halves) ((GLOBAL float16_t*)halves)[at] = float16_t(clamp(y, -65504.f, 65504.f));
}

// Stores values at .. at + 3; `at` is a multiple of 4.
DEVICE void store_halves(GLOBAL byte* halves, uint at, vec4 y) {
  typedef float16_t Four __attribute__((ext_vector_type(4)));
  const vec4 saturated = __builtin_elementwise_min(__builtin_elementwise_max(y, vec4(-65504)), vec4(65504));
  if (halves) ((GLOBAL Four*)halves)[at / 4] = __builtin_convertvector(saturated, Four);
}
