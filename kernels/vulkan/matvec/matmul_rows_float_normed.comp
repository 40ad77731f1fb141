// matmul_rows_float_normed: the decode product of weights that are floats, then a norm and a residual.
//   y[t][n] = residual[t][n] + scale * norm(W . x[t] + bias)[n] * norm_gain[n]     x [tokens][depth] float32
//   grid    (1, n / kGroupResults)
//   group   p.threads threads. A group makes its 16 results of all tokens, one token after the other
//           (group.h, sums_float.h); the last group of a token takes the norm (normed_results.h)
//   shared  64 bytes of partial sums for each slice of the columns, a sum of squares for each subgroup
//           (group.h)
//   moves   the bytes of matmul_rows_float, and 4 bytes of the product a result, written once and read once
//           or twice
// Where a factor is given, y is multiplied by it.
// The argument block is MatmulNormScaled in kernels/abi/sequences.h.
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

layout(push_constant, scalar) uniform Push {
  MatmulNormBlock p;
  float_address residual_factor;
};

const bool kNorms = false;  // no norm precedes the product
const uint kTokens = 1;     // whose sums a group makes at once

#include "kernels/vulkan/matvec/normed_results.h"  // needs p and vec4_address
#include "kernels/vulkan/matvec/sums_float.h"      // needs kNorms

uint token = 0;
uint64_t row_of_x() { return uint64_t(p.x) + uint64_t(token) * kDepth * 4; }
uint64_t gain_of_x() { return 0; }

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  chain_wait(uint64_t(p.chain));
  load_factor();
  const float bias = bias_of_thread();
  const uint live = live_rows(step_of(p.step), kRowsTokens);
  for (;;) {
    make_sums(first_rows, w);
    barrier();
    finish(token, live, bias);
    if (++token >= live) break;  // a step has at least one token
    load_first_unit(first_rows, w);
  }
  chain_end(uint64_t(p.chain));
}
