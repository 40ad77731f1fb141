// matmul_rows_float: the decode product of weights that are floats, alone or with what is fused around it.
//   y[t][n] = epilogue(sum over k of W[n][k] * x[t][k])
//     where W [n][depth] f16, bf16 or f32, x [rows][depth] float32
//   grid    (1, results / kGroupResults)
//   group   p.threads threads. A group makes its 16 results of all tokens, one token after the other: from
//           the second token on the caches have the group's weights. The rest is as in matmul_rows (group.h,
//           sums_float.h, results.h)
//   shared  64 to 128 bytes of partial sums for each slice of the columns, a sum of squares for each subgroup
//           (group.h)
//   moves   the weights once from memory; 4 bytes of x a value for each group and token, from the caches; 4
//           bytes of y
// The argument block is MatmulFloatRowBlock in kernels/abi/ops.h.
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(vec2, vec2, 8)

layout(push_constant, scalar) uniform Push { MatmulFloatRowBlock p; };
layout(constant_id = 4) const uint kEpsilon = 1u << 31;  // its bits; negative: no norm precedes

const bool kNorms = kEpsilon >> 31 == 0;
const uint kTokens = 1;  // whose sums a group makes at once

#include "kernels/vulkan/matvec/results.h"     // needs p, float16_address and vec2_address
#include "kernels/vulkan/matvec/sums_float.h"  // needs kSums and kNorms

uint64_t row_of_x() {
  return uint64_t(p.x) + uint64_t(source_row(step_of(p.step), p.rows_of, token)) * kDepth * 4;
}
uint64_t gain_of_x() { return uint64_t(p.gain); }

vec2 normed_sums(uint i) {
  const vec2 sums = sums_of_result(i);
  return kNorms ? sums * norm_factor(0, kSlices, kDepth, p.epsilon) : sums;
}

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = first_result() + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  const uint live = live_rows(step_of(p.step), p.rows_of);
  for (token = 0;;) {
    Operands operands;
    if (finishes) operands = operands_of(result, rows);
    make_sums(first_rows, w);
    barrier();
    if (finishes) finish(rows, normed_sums(i), operands);
    if (++token >= live) break;  // a step has at least one token
    barrier();
    load_first_unit(first_rows, w);
  }
  chain_end(uint64_t(p.chain));
}
