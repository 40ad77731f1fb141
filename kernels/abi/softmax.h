// The argument block of softmax. Other words are as in kernels/abi/ops.h.
#ifndef GRETA_ABI_SOFTMAX_H
#define GRETA_ABI_SOFTMAX_H
#include "kernels/abi/ops.h"

// y[r][i] = exp(z[r][i]) / (sum over i of exp(z[r][i]) + exp(sink of r)), or the logarithm of that, where
//   z[r][i] = cap * tanh(scale * x[r][i] / cap) + mask of r[i]; with cap 0 it is scale * x[r][i] + mask of
//   r[i]
// for rows r < rows. Row i of the step has rows i * heads .. i * heads + heads - 1. Where all z of a row are
// -infinity and there is no sink, y is 0, and its logarithm -infinity.
struct SoftmaxBlock {
  ADDRESS(float) x;      // [rows] of x_stride values, [width] at the start of each
  ADDRESS(float) mask;   // [mask_rows][width], or 0; row r has mask (r / mask_every) % mask_rows
  ADDRESS(float) sinks;  // [sink_count], or 0; row r has sink (r / sink_every) % sink_count
  ADDRESS(float) y;      // [rows] of y_stride values, likewise; may be x
  ADDRESS(byte) step;
  uint rows, heads, width;
  uint x_stride, y_stride;
  float scale, cap;
  uint logarithm;        // 1: y is the logarithm
  uint mask_every, mask_rows, sink_every, sink_count;
  uint rows_of;
};

#endif
