// matmul_rows_float_normed: the decode product of weights that are floats, then a norm and a residual.
//   y[t][n] = residual[t][n] + scale * norm(W . x[t] + bias)[n] * norm_gain[n]     x [tokens][depth] float32
//   grid    (1, n / kGroupResults)
//   group   p.threads threads. A group makes its 16 results of all tokens, one token after the other
//           (group.h, sums_float.h); the last group of a token takes the norm (normed_results.h)
//   shared  20 bytes for each wave (group.h)
//   moves   the bytes of matmul_rows_float, and 4 bytes of the product a result, written once and read twice
// The argument block is MatmulNormBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"
GLSL_BEGIN
#include "kernels/gpu/q8x16.h"
GLSL_END
#include "kernels/hip/matvec/normed_results.h"
#include "kernels/hip/matvec/sums_float.h"

// Makes the group's results of one token; the last group takes the norm.
DEVICE void multiply_token(const MatmulNormBlock& block, uint token) {
  const uint first = group_y() * kGroupResults, units = block.depth / 8;
  const NormedRows source = {block, quant_row_bytes(block.depth)};
  const Share share = share_of(block.threads, 1);
  Rows rows = begin_rows(source, share, first, block.n, first_set(share), units);
  const float bias = bias_of_thread(block, first);
  const uint64_t x = (uint64_t)block.x + uint64_t(token) * block.depth * 4;
  make_sums(rows, source, share, first, block.n, RowOfX{x, 0}, units);
  group_barrier();
  finish(reload(block), share, token, first, bias);
}

KERNEL_OF(GROUP, kMostThreads) void KERNEL_NAME(MatmulNormBlock p) {
  const uint live = live_rows(step_of(p.step), kRowsTokens);
  for (uint token = 0; token < live; ++token) {
    multiply_token(reload(p), token);
    group_barrier();  // the next token's sums take the place of these
  }
}
