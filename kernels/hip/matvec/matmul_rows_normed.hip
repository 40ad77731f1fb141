// matmul_rows_normed: the decode product of quantised weights, then a norm and a residual.
//   y[t][n] = residual[t][n] + scale * norm(W . x[t] + bias)[n] * norm_gain[n]
//     where x [tokens][depth] in the format q8x16
//   grid    (tokens, n / kGroupResults)
//   group   p.threads threads. Each group makes the sums of 16 results (group.h, sums_int8.h) and leaves them
//           in p.product; the last group of a token takes the norm (normed_results.h)
//   shared  20 bytes for each wave (group.h), 128 bytes, the tables of gpu/dot/<type>.h
//   moves   the bytes of matmul_rows, and 4 bytes of the product a result, written once and read twice
// The argument block is MatmulNormBlock in kernels/abi/ops.h.
#include "kernels/hip/matvec/normed_results.h"
#include "kernels/hip/matvec/sums_int8.h"

KERNEL_OF(GROUP, kMostThreads) void KERNEL_NAME(MatmulNormBlock p) {
  const uint t = group_x(), first = group_y() * kGroupResults, units = p.depth / 32;
  const NormedRows source = {p, quant_row_bytes(p.depth)};
  const Share share = share_of(p.threads, 1);
  Rows rows = begin_rows(source, share, first, p.n, first_set(share), units);
  dot_begin();
  const float bias = bias_of_thread(p, first);
  const uint64_t x = (uint64_t)p.x + uint64_t(t) * q8x16_row_bytes(p.depth);
  make_sums(rows, source, share, first, p.n, row_of_x(x, p.depth), units);
  group_barrier();
  if (t < step_of(p.step)->token_count) finish(reload(p), share, t, first, bias);
}
