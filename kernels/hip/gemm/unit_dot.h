// The sums of the plain matmuls. A wave makes a value of y, and its lanes take units of 32 columns in turn.
// Each unit is summed by itself; then come the lane's units, then the lanes.
#pragma once
#include "kernels/hip/glsl.h"

// The product of 32 weights and columns k .. of the row x, which has `depth` columns.
DEVICE float unit_dot(const float* w, const GLOBAL float* x, uint k, uint depth) {
  float sum = 0;
  if (kWholeUnits || k + kUnit <= depth) {
    for (uint i = 0; i < kUnit; ++i) sum = __builtin_fmaf(w[i], x[k + i], sum);
  } else {
    uint left = depth - k;
#ifdef __AMDGCN__
    asm volatile("" : "+v"(left));  // so that no masks are kept for the next token, for want of registers
#endif
    for (uint i = 0; i < kUnit; ++i)
      if (i < left) sum = __builtin_fmaf(w[i], x[k + i], sum);
  }
  return sum;
}
