// matmul_rows: the decode product of quantised weights, alone or with what is fused around it.
//   y[t][n] = epilogue(sum over k of W[n][k] * x[t][k])     W [n][depth], x [tokens][depth] in q8x16
//   grid    (tokens, results / kGroupResults): groups that read the same weights follow each other
//   group   p.threads threads. The waves make the sums of 16 results (group.h, sums_int8.h) with the products
//           of gpu/dot/<type>.h; then 16 threads finish a result each: bias, rotation, gate, residual, KV
//           cache (results.h)
//   shared  20 bytes for each wave (group.h), 128 bytes of results, the tables of gpu/dot/<type>.h
//   moves   the weights once for each token, from memory for the first; 1.75 bytes of x a value for each
//           group, from the caches; 4 bytes of y a result, and 1.75 more where y is rounded to q8x16 too
// The argument block is MatmulRowBlock in kernels/abi/ops.h. x may lack the factor of the norm that precedes
// the product: where epsilon is not negative, the sums are multiplied by it.
#include "kernels/hip/matvec/results.h"
#include "kernels/hip/matvec/sums_int8.h"

KERNEL_OF(GROUP, kMostThreads) void KERNEL_NAME(MatmulRowBlock block) {
  const uint t = group_x(), first = group_y() * kGroupResults, units = block.depth / 32;
  const uint i = thread_x(), result = first + i, count = result_count(block);
  const uint64_t x = (uint64_t)block.x + uint64_t(t) * q8x16_row_bytes(block.depth);
  const ResultRows<MatmulRowBlock> source = {block, quant_row_bytes(block.depth)};
  const Share share = share_of(block.threads, sums_of(block));
  Rows rows = begin_rows(source, share, first, count, first_set(share), units);
  dot_begin();
  const bool live = t < step_of(block.step)->token_count,
             finishes = live && i < kGroupResults && result < count;
  Operands operands = {};
  if (finishes) operands = operands_of(block, t, result);
  float gain = 1, square_sum = 0;
  if (finishes && block.gain) gain = block.gain[rows_of_result(block, result).x];
  if (block.epsilon >= 0) square_sum = squares_of_thread(x, block.depth, block.threads);
  make_sums(rows, source, share, first, count, row_of_x(x, block.depth), units);
  const MatmulRowBlock p = reload(block);
  if (p.epsilon >= 0) publish_squares(square_sum, wave_index());
  group_barrier();
  if (finishes) {
    vec2 sums = sums_of_result(share, i);
    if (p.epsilon >= 0) sums *= norm_factor(share.waves, p.depth, p.epsilon);
    const uvec2 y_rows = rows_of_result(p, result);
    const float y = finish(p, t, y_rows, sums, operands);
    made[i] = vec2(y * gain, y);
  }
  if (!p.rounded) return;
  group_barrier();
  if (live && i < kStoringThreads)
    store_made((uint64_t)p.rounded + uint64_t(t) * q8x16_row_bytes(p.n), p.n, group_y());
}
