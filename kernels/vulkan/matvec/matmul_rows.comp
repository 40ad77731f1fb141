// matmul_rows: the decode product of quantised weights, alone or with what is fused around it.
//   y[t][n] = epilogue(sum over k of W[n][k] * x[t][k])     W [n][depth], x [tokens][depth] in q8x16
//   grid    (tokens / kTokens, results / kGroupResults): groups that read the same weights follow each other
//   group   p.threads threads. The subgroups make the sums of 16 results of kTokens tokens (group.h,
//           sums_int8.h) with the products of dot/<type>.h; then 16 threads for each token finish a result
//           each: bias, rotation, gate, residual, KV cache (results.h)
//   shared  64 to 128 bytes of partial sums for each token and slice of the columns (group.h), 128 bytes of
//           results for each token, the tables of dot/<type>.h
//   moves   the weights once for kTokens tokens; 1.75 bytes of x a value for each group and token, from the
//           caches; 4 bytes of y a result, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulRows in kernels/abi/ops.h. x may lack the factor of the norm that precedes
// the product: where epsilon is not negative, the sums are multiplied by it.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulRowBlock p; };

layout(constant_id = 4) const uint kTokens = 1;  // of a group; at most 8

#include "kernels/vulkan/matvec/results.h"    // needs p and kTokens
#include "kernels/vulkan/matvec/sums_int8.h"  // needs kSums and kTokens

uint first_token() { return gl_WorkGroupID.x * kTokens; }
uint64_t row_of_token(uint64_t rows, uint t, uint width) {
  return rows + uint64_t(t) * q8x16_row_bytes(width);
}
uint64_t row_of_x() { return row_of_token(uint64_t(p.x), first_token(), kDepth); }

// Whether a token lives. A step has at least one token.
bool lives(uint t) { return t == 0 || t < step_of(p.step).state.token_count; }

// The squares of x, of the kSquared tokens whose sums this subgroup makes or shares.
uint squared_token(uint i) { return kTokens == 1 ? 0 : gl_SubgroupID / kSquaring * kSquared + i; }
uint squared_part() { return kTokens == 1 ? gl_SubgroupID : gl_SubgroupID % kSquaring; }

void load_squares(out float sums[kSquared]) {
  [[unroll]] for (uint i = 0; i < kSquared; ++i)
    sums[i] = squares_of_thread(row_of_x() + squared_token(i) * q8x16_row_bytes(kDepth), squared_part());
}

void leave_squares(float sums[kSquared]) {
  [[unroll]] for (uint i = 0; i < kSquared; ++i)
    publish_squares(sums[i], squared_token(i) * kSquaring + squared_part());
}

void main() {
  uint64_t first_rows[kSubgroupRows];
  Weights w[kSubgroupRows];
  begin_rows(first_rows, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  // Thread i finishes a result of a token of the group.
  const uint i = gl_LocalInvocationIndex, own = kTokens == 1 ? 0 : i / kGroupResults;
  const uint result = first_result() + i - own * kGroupResults;
  const bool finishes = i < kGroupResults * kTokens && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  token = first_token() + own;
  Operands operands;
  if (finishes) operands = operands_of(result, rows);
  float gain = 1;
  if (finishes && uint64_t(p.gain) != 0) gain = p.gain.at[rows.x];
  float square_sums[kSquared];
  if (p.epsilon >= 0) load_squares(square_sums);
  make_sums(first_rows, w);
  if (p.epsilon >= 0) leave_squares(square_sums);
  // NVIDIA's compiler finds the better order of the products when the question stands here.
  const bool live = lives(token);
  barrier();
  if (finishes && live) {
    vec2 sums = sums_of_result(i);
    if (p.epsilon >= 0) sums *= norm_factor(own * kSquaring, kSquaring, kDepth, p.epsilon);
    const float y = finish(rows, sums, operands);
    made[i] = vec2(y * gain, y);
  }
  if (uint64_t(p.rounded) != 0) {
    barrier();
    const uint t = first_token() + (kTokens == 1 ? 0 : i / kStoringThreads);
    if (i < kStoringThreads * kTokens && (kTokens == 1 ? live : lives(t)))
      store_made(row_of_token(uint64_t(p.rounded), t, p.n), p.n, gl_WorkGroupID.y);
  }
  chain_end(uint64_t(p.chain));
}
