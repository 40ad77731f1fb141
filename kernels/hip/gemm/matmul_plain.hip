// matmul_plain: the product for any type, shape and number of tokens; the definition of right.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [rows][depth] float32
//   grid    (n / p.tile)
//   group   GROUP threads. A wave makes one row of y at a time (gemm/unit_dot.h), and decodes each weight
//   once
//           for kTokens tokens
//   shared  the tables of quant/<type>.h
//   moves   the weights once for each kTokens tokens; x once for each row of y, from the caches; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/hip/gemm/unit_dot.h"
#include "kernels/hip/step.h"

constexpr uint kTokens = 8;  // tokens for which a weight is decoded once

// Makes row n of y for tokens first .. first + count - 1. A sum does not depend on `count`.
DEVICE void multiply_row(const MatmulBlock& p, uint n, uint first, uint count) {
  const Step step = step_of(p.step);
  const uint64_t row = uint64_t(p.weight) + n * quant_row_bytes(p.depth);
  const GLOBAL float* x[kTokens];
  float sums[kTokens];
  for (uint t = 0; t < kTokens; ++t) {
    const uint source = source_row(step, p.rows_of, first + (t < count ? t : count - 1));
    x[t] = (const GLOBAL float*)p.x + uint64_t(source) * p.depth;
    sums[t] = 0;
  }
  for (uint k = lane() * kUnit; k < p.depth; k += kWave * kUnit) {
    float w[kUnit];
    quant_decode(row, p.depth, k / kUnit, w);
    for (uint t = 0; t < kTokens; ++t)
      if (t < count) sums[t] += unit_dot(w, x[t], k, p.depth);
  }
  const float bias = p.bias ? p.bias[n] : 0;
  for (uint t = 0; t < kTokens; ++t) {
    if (t >= count) break;
    const float sum = wave_sum(sums[t]);
    if (lane() == 0) p.y[(first + t) * p.n + n] = sum + bias;
  }
}

KERNEL(GROUP) void KERNEL_NAME(MatmulBlock p) {
  quant_begin();
  const uint live = live_rows(step_of(p.step), p.rows_of);
  const uint n = group_x() * p.tile, end = n + p.tile < p.n ? n + p.tile : p.n;
  for (uint r = n + wave_index(); r < end; r += GROUP / kWave)
    for (uint first = 0; first < live; first += kTokens) {
      const uint count = live - first;
      multiply_row(p, r, first, count < kTokens ? count : kTokens);
    }
}
