// matmul_rows_normed: the decode product of quantised weights, then a norm and a residual.
//   y[t][n] = residual[t][n] + scale * norm(W . x[t] + bias)[n] * norm_gain[n]
//     where x [tokens][depth] in the format q8x16
//   grid    (tokens, n / kGroupResults)
//   group   p.threads threads. Each group makes the sums of 16 results (group.h, sums_int8.h) and leaves them
//           in p.product; the last group of a token takes the norm (normed_results.h)
//   shared  64 bytes of partial sums for each slice of the columns (group.h), the tables of dot/<type>.h
//   moves   the bytes of matmul_rows, and 4 bytes of the product a result, written once and read once or
//           twice
// The argument block is MatmulNormBlock in kernels/abi/ops.h.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulNormBlock p; };

#include "kernels/vulkan/matvec/normed_results.h"  // needs p
#include "kernels/vulkan/matvec/sums_int8.h"

uint64_t row_of_x() { return uint64_t(p.x) + gl_WorkGroupID.x * q8x16_row_bytes(kDepth); }

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  const uint t = gl_WorkGroupID.x;
  const float bias = bias_of_thread();
  make_sums(first_rows, w);
  const bool live = t == 0 || t < step_of(p.step).state.token_count;  // a step has at least one token
  barrier();
  if (live) finish(t, bias);
  chain_end(uint64_t(p.chain));
}
