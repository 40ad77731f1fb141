// matmul_expert_plain: group (i, slot) makes rows i * tile .. of one slot of a token with the slot's expert, a
// subgroup one of them at a time. Sums run in matmul's order.
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
