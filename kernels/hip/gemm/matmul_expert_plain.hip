// matmul_expert_plain: the product with experts for any type, shape and number of tokens; the definition of
// right.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]
//     where x float32; a slot is an expert of a token
//   grid    (n / p.tile, slots of all tokens)
//   group   GROUP threads. A wave makes one row of y at a time (gemm/unit_dot.h); sums run in the order of
//           matmul_plain
//   shared  the tables of quant/<type>.h
//   moves   the weights of each slot's expert once; x once for each row of y, from the caches; y
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#include "kernels/hip/gemm/unit_dot.h"
#include "kernels/hip/step.h"

DEVICE float row_dot(uint64_t row, const GLOBAL float* x, uint depth) {
  float sum = 0;
  for (uint k = lane() * kUnit; k < depth; k += kWave * kUnit) {
    float w[kUnit];
    quant_decode(row, depth, k / kUnit, w);
    sum += unit_dot(w, x, k, depth);
  }
  return wave_sum(sum);
}

KERNEL(GROUP) void KERNEL_NAME(MatmulExpertBlock p) {
  quant_begin();
  const uint slot = group_y();
  if (slot >= live_rows(step_of(p.step), kRowsTokens) * p.used) return;
  const uint expert = p.ids ? p.ids[slot] : slot % p.used;
  if (expert - p.first >= p.experts) return;
  const uint64_t row_bytes = quant_row_bytes(p.depth);
  const auto x = (const GLOBAL float*)p.x + uint64_t(p.x_slots == 1 ? slot / p.used : slot) * p.x_stride;
  const uint n = group_x() * p.tile, end = n + p.tile < p.n ? n + p.tile : p.n;
  for (uint r = n + wave_index(); r < end; r += GROUP / kWave) {
    const uint64_t row = uint64_t(p.weight) + ((expert - p.first) * p.n + r) * row_bytes;
    const float sum = row_dot(row, x, p.depth);
    const float bias = p.bias ? p.bias[expert * p.n + r] : 0;
    if (lane() == 0) p.y[slot * p.y_stride + r] = sum + bias;
  }
}
