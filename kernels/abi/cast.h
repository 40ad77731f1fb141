// The argument block of cast. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_CAST_H
#define GRETA_ABI_CAST_H
#include "kernels/abi/ops.h"

#define kCastF32 0
#define kCastF16 1
#define kCastBf16 2
#define kCastCount 3

// y[i][k] = x[i][k] in another type, rounded to nearest even: what is too large becomes infinity, NaN stays.
struct CastBlock {
  ADDRESS(byte) x;  // [rows] of x_stride values of x_type, [width] at the start of each
  ADDRESS(byte) y;  // [rows] of y_stride values of y_type, likewise
  ADDRESS(byte) step;
  uint width, x_stride, y_stride;
  uint x_type, y_type;  // kCast*
  uint rows_of;
};

#endif
