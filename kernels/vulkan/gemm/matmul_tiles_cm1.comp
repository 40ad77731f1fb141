// matmul_tiles_cm1: the GEMM of many tokens with the cooperative matrices of subgroups (KHR), with split-K.
//   y[t][n] = sum over k of W[n][k] * x[t][k] + bias[n] + residual[t][n]
//     where W [n][depth], x [tokens][depth] float16
//   grid    (tiles of kTokens tokens, tiles of kRows rows, ranges of the columns)
//   group   kThreads threads make a tile of y over a range of the columns. They decode the weights to float16
//           on their way to shared memory (gemm/tile.h), and multiply matrices with sums in float32
//           (gemm/cm1.h). The last group of a tile adds the partial sums of the ranges (gemm/split_k.h)
//   shared  BUFFERS tiles of x and weights: (kTokens + kRows) * (2 * STEP + 16) bytes each
//   moves   the weights once for each tile of tokens, x once for each tile of rows; y, and the residual; with
//           several ranges 4 bytes for each value of y and range, written and read once
// The argument block is MatmulTileBlock in kernels/abi/ops.h.
#define TILE_BLOCK MatmulTileBlock
#define STEP (kLanes < 64 ? 64 : 32)  // gemm/cm1.h says why
#define BUFFERS (kLanes < 64 ? 1 : 2)
#include "kernels/vulkan/gemm/tokens.h"
#include "kernels/vulkan/gemm/cm1.h"
#include "kernels/vulkan/gemm/split_k.h"

// Stores a tile that lies inside of y. Each of its tokens begins at a multiple of 16 bytes.
void store_whole() {
  const uint token = first_token + gl_SubgroupID / kAcross * kSubgroupTokens;
  const uint row = first_row + gl_SubgroupID % kAcross * kSubgroupRows;
  [[unroll]] for (uint i = 0; i < kTall; ++i) {
    [[unroll]] for (uint j = 0; j < kWide; ++j) {
      const uint at = (token + j * kN) * p.n + row + i * kM;
      MatrixY y = sums[i * kWide + j];
      if (uint64_t(p.residual) != 0) {
        MatrixY residual;
        coopMatLoad(residual, p.residual.at, at, p.n, gl_CooperativeMatrixLayoutColumnMajor);
        y = residual + y;
      }
      coopMatStore(y, p.y.at, at, p.n, gl_CooperativeMatrixLayoutColumnMajor);
    }
  }
}

void main() {
  if (!begin_tile()) return;
  clear_sums();
  const uint blocks = (p.depth + kTileColumns - 1) / kTileColumns, ranges = gl_NumWorkGroups.z;
  multiply_tile(gl_WorkGroupID.z * blocks / ranges * kTileColumns,
                min((gl_WorkGroupID.z + 1) * blocks / ranges * kTileColumns, p.depth));
  if (!is_finished()) return;
  const bool whole = first_token + kTokens <= live && first_row + kRows <= p.n && p.n % 4 == 0;
  if (whole && uint64_t(p.bias) == 0)
    store_whole();
  else
    store_clipped();
}
