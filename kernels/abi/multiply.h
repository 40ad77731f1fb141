// The argument block of multiply. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_MULTIPLY_H
#define GRETA_ABI_MULTIPLY_H
#include "kernels/abi/ops.h"

// Those of activations are activation(x) / x: multiplied by x they give the activation.
#define kFactorItself 0
#define kFactorLogistic 1  // 1 / (1 + exp(-x)): SiLU
#define kFactorPositive 2  // x, and 0 where it is negative: the squared ReLU
#define kFactorGelu 3      // the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3): GELU by tanh
#define kFactorGeluErf 4   // the part of a normal distribution below x: GELU by erf
// xIELU (arXiv 2411.13010): positive * x + linear where x is positive, and else
// negative * ((exp(x) - 1) / x - 1) + linear.
#define kFactorXielu 5
#define kFactorSoftplus 6  // ln(1 + exp(x)), which is of no activation
#define kFactorCount 7

struct MultiplyBlock {  // y[t][h][i] = factor(x[t][h][i * x_step]) * by[t][h][i]
  ADDRESS(float) x;   // [tokens][heads] of x_stride values, at the start of each [width], or 1 if x_step is 0
  ADDRESS(float) by;  // likewise of by_stride, [width]
  ADDRESS(float) y;   // [tokens][heads][width]; may be by without gaps
  ADDRESS(byte) step;
  uint heads, width;
  uint x_stride, by_stride;
  uint x_step;        // 1, or 0: one value of x for a whole head
  uint factor;        // kFactor*
  float positive, negative, linear;  // of kFactorXielu
};

#endif
