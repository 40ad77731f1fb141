// gemm_plain: y[i] = alpha * A[i] . B[i] + beta * y[i]
//   A [m][k], B [k][n], either of them turned; float32, float16 or bfloat16. y [m][n] float32 or of that type
//   grid    (n / tile_tokens, m / tile, matrices)
//   group   a tile of y, whose sums are float32, in order of k
//   scratch none
//   moves   a and b from caches, y once; twice with beta
// The argument block is GemmBlock in kernels/abi/gemm.h.
#include "kernels/cpu/gemm/values.h"
#include "kernels/cpu/scratch.h"

static float product(const GemmBlock& p, uint32_t matrix, uint32_t m, uint32_t n) {
  const uint64_t a_step = p.a_turned ? p.a_stride : 1, b_step = p.b_turned ? 1 : p.b_stride;
  uint64_t a = uint64_t(matrix) * p.a_batch + uint64_t(m) * (p.a_turned ? 1 : p.a_stride);
  uint64_t b = uint64_t(matrix) * p.b_batch + uint64_t(n) * (p.b_turned ? p.b_stride : 1);
  float sum = 0;
  for (uint32_t k = 0; k < p.k; ++k, a += a_step, b += b_step)
    sum = __builtin_fmaf(load_value(p.a, p.type, a), load_value(p.b, p.type, b), sum);
  return sum;
}

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const GemmBlock& p = *(const GemmBlock*)block;
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const Tile tile = tile_of(p, group);
    for (uint32_t m = tile.row; m < tile.row + tile.rows; ++m)
      for (uint32_t n = tile.column; n < tile.column + tile.columns; ++n)
        store_result(p, tile.matrix, m, n, product(p, tile.matrix, m, n));
  }
}
