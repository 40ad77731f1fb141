// matmul_rows_float: the decode product of weights that are floats, alone or with what is fused around it.
//   y[t][n] = epilogue(sum over k of W[n][k] * x[t][k])
//     where W [n][depth] f16, bf16 or f32, x [rows][depth] float32
//   grid    (1, results / kGroupResults)
//   group   p.threads threads. A group makes its 16 results of all tokens, one token after the other: from
//           the second token on the caches have the group's weights. The rest is as in matmul_rows (group.h,
//           sums_float.h, results.h)
//   shared  20 bytes for each wave (group.h)
//   moves   the weights once from memory; 4 bytes of x a value for each group and token, from the caches; 4
//           bytes of y
// The argument block is MatmulFloatRowBlock in kernels/abi/ops.h.
#include "kernels/hip/matvec/results.h"
#include "kernels/hip/matvec/sums_float.h"

// Makes the group's results of one token.
DEVICE void multiply_token(const MatmulFloatRowBlock& block, uint token) {
  const uint first = group_y() * kGroupResults, count = result_count(block), units = block.depth / 8;
  const uint i = thread_x(), result = first + i;
  const bool finishes = i < kGroupResults && result < count;
  const ResultRows<MatmulFloatRowBlock> source = {block, quant_row_bytes(block.depth)};
  const Share share = share_of(block.threads, sums_of(block));
  Rows rows = begin_rows(source, share, first, count, first_set(share), units);
  Operands operands = {};
  if (finishes) operands = operands_of(block, token, result);
  const uint x_row = source_row(step_of(block.step), block.rows_of, token);
  const RowOfX x = {(uint64_t)block.x + uint64_t(x_row) * block.depth * 4,
                    block.epsilon >= 0 ? (uint64_t)block.gain : 0};
  make_sums(rows, source, share, first, count, x, units);
  const MatmulFloatRowBlock p = reload(block);
  group_barrier();
  if (!finishes) return;
  vec2 sums = sums_of_result(share, i);
  if (p.epsilon >= 0) sums *= norm_factor(share.slices, p.depth, p.epsilon);
  finish(p, token, rows_of_result(p, result), sums, operands);
}

KERNEL_OF(GROUP, kMostThreads) void KERNEL_NAME(MatmulFloatRowBlock p) {
  const uint live = live_rows(step_of(p.step), p.rows_of);
  for (uint token = 0; token < live; ++token) {
    multiply_token(reload(p), token);
    group_barrier();  // the next token's sums take the place of these
  }
}
