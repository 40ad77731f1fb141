// matmul_tiles_plain: the GEMM of many tokens on a device without cooperative matrices.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n] + residual[t][n]
//     where W [n][depth], x [tokens][depth] float16
//   grid    (tiles of kTokens tokens, tiles of kRows rows)
//   group   kThreads threads make a tile of y. They decode the weights to float16 on their way to shared
//           memory (gemm/tile.h), and multiply with products and sums in float32 (gemm/plain.h)
//   shared  two tiles of x and weights: (kTokens + kRows) * 80 bytes each
//   moves   the weights once for each tile of tokens, x once for each tile of rows; y, and the residual
// The argument block is MatmulTileBlock in kernels/abi/ops.h.
#define TILE_BLOCK MatmulTileBlock
#include "kernels/vulkan/gemm/tokens.h"
#include "kernels/vulkan/gemm/plain.h"

void main() {
  if (!begin_tile()) return;
  clear_sums();
  multiply_tile(0, p.depth);
  store_sums();
}
