// The argument block of gemm. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_GEMM_H
#define GRETA_ABI_GEMM_H
#include "kernels/abi/abi.h"

// Types of values.
#define kGemmF32 0
#define kGemmF16 1
#define kGemmBf16 2
#define kGemmTypes 3

// y[i] = alpha * A[i] . B[i] + beta * y[i], where A is [m][k], B [k][n] and y [m][n]. Sums are float32. With
// a beta of 0 y is not read.
struct GemmBlock {
  ADDRESS(byte) a;  // [batch][m] rows of a_stride values, [k] at the start of each; turned: [k] rows, [m]
  ADDRESS(byte) b;  // [batch][k] rows of b_stride values, [n] at the start of each; turned: [n] rows, [k]
  ADDRESS(byte) y;  // [batch][m] rows of y_stride values, [n] at the start of each
  uint m, n, k;
  uint a_stride, b_stride, y_stride;
  uint a_batch, b_batch, y_batch;  // values from one matrix to the next; 0: all have the same
  float alpha, beta;
  uint type, y_type;               // kGemm*: of a and b; of y
  uint a_turned, b_turned;
  uint tile, tile_tokens;          // rows and columns of y that a group makes
  // 1: tiles lie inside of y, k is a multiple of `step`, and rows begin at multiples of 16 bytes
  uint whole;
  uint step;  // columns of A that are brought at a time
  uint band;  // rows of tiles that groups make side by side, so that they find a and b in the cache
};

#endif
