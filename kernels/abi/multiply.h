// The argument block of multiply. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_MULTIPLY_H
#define GRETA_ABI_MULTIPLY_H
#include "kernels/abi/ops.h"

#define kFactorItself 0
#define kFactorLogistic 1  // 1 / (1 + exp(-x))
#define kFactorPositive 2  // x, and 0 where it is negative

struct MultiplyBlock {  // y[t][h][i] = factor(x[t][h][i]) * by[t][h][i]
  ADDRESS(float) x;   // [tokens][heads] of x_stride values, [width] at the start of each
  ADDRESS(float) by;  // likewise of by_stride
  ADDRESS(float) y;   // [tokens][heads][width]; may be by without gaps
  ADDRESS(byte) step;
  uint heads, width;
  uint x_stride, by_stride;
  uint factor;        // kFactor*
};

#endif
