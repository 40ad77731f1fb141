// matmul_rows_avx2: the decode product of few tokens, alone and in the sequences of a decode step.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [tokens][depth] float32
//   grid    (n / TILE), or (heads) where heads are rotated or written
//   group   TILE rows of y, or one head, of all tokens (simd/rows.h)
//   scratch x of all tokens that fit, normalised and rounded to the format in which the type multiplies
//   moves   the weights once; x once for each worker, from the caches; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/avx2/type.h"
#include "kernels/cpu/simd/rows.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_rows<Rows>(*(const MatmulBlock*)block, first_group, group_count, scratch);
}
