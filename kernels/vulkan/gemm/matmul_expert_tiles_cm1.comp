// matmul_expert_tiles_cm1: the GEMM of many tokens with experts, on the cooperative matrices of subgroups
// (KHR).
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]     x float16
//   grid    (tiles of slots, tiles of kRows rows of all experts)
//   group   kThreads threads make a tile of the slots that chose an expert, as in matmul_tiles_cm1, and then
//           further tiles of the same expert and rows (gemm/slots.h)
//   shared  BUFFERS tiles of x and weights: (kTokens + kRows) * (2 * STEP + 16) bytes each; 4 bytes for each
//           token of the tile
//   moves   the weights of an expert once for each tile of its slots, x once for each tile of rows; y; the
//           ids once for each group
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#define TILE_BLOCK MatmulExpertBlock
#define STEP (kLanes < 64 ? 64 : 32)  // gemm/cm1.h says why
#define BUFFERS (kLanes < 64 ? 1 : 2)
#include "kernels/vulkan/gemm/slots.h"
#include "kernels/vulkan/gemm/cm1.h"

void main() {
  if (!begin_expert()) return;
  quant_begin();
  for (; first_slot < slot_count; first_slot += gl_NumWorkGroups.x * kTokens) {
    begin_tile();
    clear_sums();
    multiply_tile(0, p.depth);
    store_clipped();
  }
}
