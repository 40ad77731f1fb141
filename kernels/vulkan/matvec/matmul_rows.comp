// matmul_rows: the decode product of quantised weights, alone or with what is fused around it.
//   y[t][n] = epilogue(sum over k of W[n][k] * x[t][k])     W [n][depth], x [tokens][depth] in q8x16
//   grid    (tokens, results / kGroupResults): groups that read the same weights follow each other
//   group   p.threads threads. The subgroups make the sums of 16 results (group.h, sums_int8.h) with the
//           products of dot/<type>.h; then 16 threads finish a result each: bias, rotation, gate, residual,
//           KV cache (results.h)
//   shared  64 to 128 bytes of partial sums for each slice of the columns (group.h), 128 bytes of results,
//           the tables of dot/<type>.h
//   moves   the weights once for each token, from memory for the first; 1.75 bytes of x a value for each
//           group, from the caches; 4 bytes of y a result, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulRowBlock in kernels/abi/ops.h. x may lack the factor of the norm that precedes
// the product: where epsilon is not negative, the sums are multiplied by it.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulRowBlock p; };

#include "kernels/vulkan/matvec/results.h"    // needs p
#include "kernels/vulkan/matvec/sums_int8.h"  // needs kSums

uint64_t row_of_x() { return uint64_t(p.x) + gl_WorkGroupID.x * q8x16_row_bytes(kDepth); }

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = first_result() + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  Operands operands;
  if (finishes) operands = operands_of(result, rows);
  float gain = 1;
  if (finishes && uint64_t(p.gain) != 0) gain = p.gain.at[rows.x];
  float square_sum = 0;
  if (p.epsilon >= 0) square_sum = squares_of_thread(row_of_x());
  make_sums(first_rows, w);
  if (p.epsilon >= 0) publish_squares(square_sum, gl_SubgroupID);
  // Whether the token lives. A step has at least one token, and NVIDIA's compiler finds the better order of
  // the products when the question stands here.
  const bool live = gl_WorkGroupID.x == 0 || gl_WorkGroupID.x < step_of(p.step).state.token_count;
  barrier();
  if (finishes && live) {
    const vec2 sums = sums_of_result(i);
    const bool norms = p.epsilon >= 0;
    const float y = finish(rows, norms ? sums * norm_factor(kSubgroups, kDepth, p.epsilon) : sums, operands);
    made[i] = vec2(y * gain, y);
  }
  if (uint64_t(p.rounded) != 0) {
    barrier();
    if (live && i < kStoringThreads)
      store_made(uint64_t(p.rounded) + uint64_t(gl_WorkGroupID.x) * q8x16_row_bytes(p.n), p.n,
                 gl_WorkGroupID.y);
  }
  chain_end(uint64_t(p.chain));
}
