// The argument block of layer_norm. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_LAYER_NORM_H
#define GRETA_ABI_LAYER_NORM_H
#include "kernels/abi/ops.h"

// y[i][h] = (x[i][h] - mean) / sqrt(variance + epsilon) * gain[h] + bias[h], by mean and variance of x[i][h]
struct LayerNormBlock {
  ADDRESS(float) x;     // [rows][heads][width]
  ADDRESS(float) gain;  // [heads][width], or 0
  ADDRESS(float) bias;  // likewise
  ADDRESS(float) y;     // [rows][heads][width]; may be x, unless rows are gathered
  ADDRESS(byte) step;
  uint width, heads;
  float epsilon;
  uint rows_of;
};

#endif
