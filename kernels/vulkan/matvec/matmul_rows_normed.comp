// matmul_rows_normed: the decode product of quantised weights, then a norm and a residual.
//   y[t][n] = residual[t][n] + scale * norm(W . x[t] + bias)[n] * norm_gain[n]
//     where x [tokens][depth] in the format q8x16
//   grid    (tokens / kTokens, n / kGroupResults)
//   group   p.threads threads. Each group makes the sums of 16 results of kTokens tokens (group.h,
//           sums_int8.h) and leaves them in p.product; the last group of these tokens takes their norms
//           (normed_results.h)
//   shared  64 bytes of partial sums for each token and slice of the columns (group.h), the tables of
//           dot/<type>.h
//   moves   the bytes of matmul_rows, and 4 bytes of the product a result, written once and read once or
//           twice
// Where a factor is given, y is multiplied by it.
// The argument block is MatmulNormScaled in kernels/abi/sequences.h.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push {
  MatmulNormBlock p;
  float_address residual_factor;
};

layout(constant_id = 4) const uint kTokens = 1;  // of a group; at most 8

#include "kernels/vulkan/matvec/normed_results.h"  // needs p and kTokens
#include "kernels/vulkan/matvec/sums_int8.h"

uint first_token() { return gl_WorkGroupID.x * kTokens; }
uint64_t row_of_x() { return uint64_t(p.x) + first_token() * q8x16_row_bytes(kDepth); }

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  load_factor();
  const float bias = bias_of_thread();
  make_sums(first_rows, w);
  const uint live = first_token() == 0 && kTokens == 1 ? 1 : step_of(p.step).state.token_count;
  barrier();
  const uint ended = first_token() < live ? finish(first_token(), live, bias) : 1;
  if (ended != 0) chain_end_of(uint64_t(p.chain), ended);
}
