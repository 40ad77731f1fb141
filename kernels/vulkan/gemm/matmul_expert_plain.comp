// matmul_expert_plain: the product with experts for any type, shape and number of tokens; the definition of
// right.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]
//     where x float32; a slot is an expert of a token
//   grid    (n / p.tile, slots of all tokens)
//   group   GROUP threads. A subgroup makes one row of y at a time (gemm/unit_dot.h); sums run in the order
//           of matmul_plain
//   shared  the tables of quant/<type>.h
//   moves   the weights of each slot's expert once; x once for each row of y, from the caches; y
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/gemm/unit_dot.h"

layout(push_constant, scalar) uniform Push { MatmulExpertBlock p; };

float row_dot(uint64_t row, uint64_t x) {
  float sum = 0;
  for (uint k = gl_SubgroupInvocationID * kUnit; k < p.depth; k += gl_SubgroupSize * kUnit) {
    float w[kUnit];
    quant_decode(row, p.depth, k / kUnit, w);
    sum += unit_dot(w, x, k, p.depth);
  }
  return subgroupAdd(sum);
}

void main() {
  quant_begin();
  const uint slot = gl_WorkGroupID.y;
  if (slot >= live_rows(step_of(p.step), kRowsTokens) * p.used) return;
  const uint expert = uint64_t(p.ids) != 0 ? p.ids.at[slot] : slot % p.used;
  if (expert - p.first >= p.experts) return;
  const uint64_t row_bytes = quant_row_bytes(p.depth);
  const uint64_t x = uint64_t(p.x) + uint64_t(p.x_slots == 1 ? slot / p.used : slot) * p.x_stride * 4;
  const uint n = gl_WorkGroupID.x * p.tile;
  for (uint r = n + gl_SubgroupID; r < min(n + p.tile, p.n); r += gl_NumSubgroups) {
    const float sum = row_dot(uint64_t(p.weight) + ((expert - p.first) * p.n + r) * row_bytes, x);
    const float bias = uint64_t(p.bias) != 0 ? p.bias.at[expert * p.n + r] : 0;
    if (gl_SubgroupInvocationID == 0) p.y.at[slot * p.y_stride + r] = sum + bias;
  }
}
