// matmul_plain: the product for any type, shape and number of tokens; the definition of right.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [rows][depth] float32
//   grid    (n / p.tile)
//   group   GROUP threads. A subgroup makes one row of y at a time (gemm/unit_dot.h), and decodes each weight
//           once for kTokens tokens
//   shared  the tables of quant/<type>.h
//   moves   the weights once for each kTokens tokens; x once for each row of y, from the caches; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/gemm/unit_dot.h"

layout(push_constant, scalar) uniform Push { MatmulBlock p; };

const uint kTokens = 8;  // tokens for which a weight is decoded once

// Makes row n of y for tokens first .. first + count - 1. A sum does not depend on `count`.
void multiply_row(StepState_address step, uint n, uint first, uint count) {
  const uint64_t row = uint64_t(p.weight) + n * quant_row_bytes(p.depth);
  uint64_t x[kTokens];
  float sums[kTokens];
  [[unroll]] for (uint t = 0; t < kTokens; ++t) {
    const uint source = source_row(step, p.rows_of, first + min(t, count - 1));
    x[t] = uint64_t(p.x) + uint64_t(source) * p.depth * 4;
    sums[t] = 0;
  }
  for (uint k = gl_SubgroupInvocationID * kUnit; k < p.depth; k += gl_SubgroupSize * kUnit) {
    float w[kUnit];
    quant_decode(row, p.depth, k / kUnit, w);
    [[unroll]] for (uint t = 0; t < kTokens; ++t)
      if (t < count) sums[t] += unit_dot(w, x[t], k, p.depth);
  }
  const float bias = uint64_t(p.bias) != 0 ? p.bias.at[n] : 0;
  [[unroll]] for (uint t = 0; t < kTokens; ++t) {
    const float sum = subgroupAdd(sums[t]);
    if (t < count && gl_SubgroupInvocationID == 0) p.y.at[(first + t) * p.n + n] = sum + bias;
  }
}

void main() {
  quant_begin();
  StepState_address step = step_of(p.step);
  const uint live = live_rows(step, p.rows_of);
  const uint n = gl_WorkGroupID.x * p.tile;
  for (uint r = n + gl_SubgroupID; r < min(n + p.tile, p.n); r += gl_NumSubgroups)
    for (uint first = 0; first < live; first += kTokens)
      multiply_row(step, r, first, min(live - first, kTokens));
}
