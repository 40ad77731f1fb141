// matmul of a few tokens with weights that are floats, alone or with what is fused around it (MatmulFloatRowBlock,
// kernels/abi/ops.h).
//   grid   (1; kGroupResults results to a group): all tokens one after the other, after the first of which the caches have
//          the group's weights
//   group  as in matmul_rows
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(vec2, vec2, 8)

layout(push_constant, scalar) uniform Push { MatmulFloatRowBlock p; };
layout(constant_id = 4) const uint kEpsilon = 1u << 31;  // the bits of it; negative: no norm

#include "kernels/vulkan/matvec/rows_y.h"

const bool kNorms = kEpsilon >> 31 == 0;
uint64_t row_of_x() { return uint64_t(p.x) + uint64_t(source_row(step_of(p.step), p.rows_of, token)) * kDepth * 4; }
uint64_t gain_of_x() { return uint64_t(p.gain); }

#include "kernels/vulkan/matvec/rows_group_float.h"

vec2 sums_of(uint i) {
  const vec2 sums = sums_of_slices(i);
  return kNorms ? sums * norm_factor(kSlices, kDepth, p.epsilon) : sums;
}

void main() {
  uint64_t rows_held[kStreams];
  Weights w[kStreams];
  hold(rows_held, w);
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = first_result() + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  const uint live = live_rows(step_of(p.step), p.rows_of);
  for (token = 0;;) {
    Operands operands;
    if (finishes) operands = operands_of(result, rows);
    make_all(rows_held, w);
    barrier();
    if (finishes) finish(rows, sums_of(i), operands);
    if (++token >= live) break;  // a step has a token
    barrier();
    load_held(rows_held, w);
  }
  chain_end(uint64_t(p.chain));
}
