// matmul_expert_tiles_plain: the GEMM of many tokens with experts, on a device without cooperative matrices.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]     x float16
//   grid    (tiles of slots, tiles of kRows rows of all experts)
//   group   kThreads threads make a tile of the slots that chose an expert, as in matmul_tiles_plain, and
//           then further tiles of the same expert and rows (gemm/slots.h)
//   shared  two tiles of x and weights: (kTokens + kRows) * 80 bytes each; 4 bytes for each token of the tile
//   moves   the weights of an expert once for each tile of its slots, x once for each tile of rows; y; the
//           ids once for each group
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#define TILE_BLOCK MatmulExpertBlock
#include "kernels/vulkan/gemm/slots.h"
#include "kernels/vulkan/gemm/plain.h"

void main() {
  if (!begin_expert()) return;
  quant_begin();
  for (; first_slot < slot_count; first_slot += gl_NumWorkGroups.x * kTokens) {
    begin_tile();
    clear_sums();
    multiply_tile(0, p.depth);
    store_sums();
  }
}
