// matmul_tiles_amx: the product of many tokens in bfloat16, alone or added to a residual.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n]     W [n][depth], x [tokens][depth] float32
//   grid    (n / TILE)
//   group   TILE rows of y of all tokens (simd/amx/tiles.h)
//   scratch x of a block of tokens, and TILE rows of W, unpacked, as many columns as fit
//   moves   the weights once for each block of tokens; x once for each worker; y
// The argument block is MatmulBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/amx/weights.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_tiles_amx<AmxWeights<Tiles> >(*(const MatmulBlock*)block, first_group, group_count, scratch);
}
