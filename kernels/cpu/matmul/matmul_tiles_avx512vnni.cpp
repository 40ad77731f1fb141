// matmul_tiles_avx512vnni: the product of many tokens, alone or added to a residual.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [tokens][depth] in q8, or float32
//                                                           where the weights are floats
//   grid    (n / TILE)
//   group   TILE rows of y of all tokens (simd/tiles.h)
//   scratch a panel: TILE rows of W unpacked, as many columns as fit
//   moves   the weights once for each block of tokens; x once for each group, from the caches; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/avx512vnni/type.h"
#include "kernels/cpu/simd/tiles.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_tiles<Tiles>(*(const MatmulBlock*)block, first_group, group_count, scratch);
}
