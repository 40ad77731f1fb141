// matmul_tiles_cm1: y = W . x for many tokens with the cooperative matrices of subgroups (KHR), weights decoded to
// float16 on their way to shared memory, sums in float32. x is in the form f16. Weights are the left matrix.
//   grid   (tiles of tokens, tiles of rows, parts of the columns)
//   group  a tile of y over a part of the columns; its subgroups stand in a grid of kDown x kAcross, each with a part of
//          the tile. The last group of a tile adds the parts (gemm/parts.h)
#define STEP (kLanes < 64 ? 64 : 32)  // gemm/cm1.h
#define BUFFERS (kLanes < 64 ? 1 : 2)
#include "kernels/vulkan/gemm/tokens.h"
#include "kernels/vulkan/gemm/cm1.h"
#include "kernels/vulkan/gemm/parts.h"

// A tile that lies inside of y, each token of it at a multiple of 16 bytes.
void store_whole() {
  const uint token = first_token + gl_SubgroupID / kAcross * kPartTokens;
  const uint row = first_row + gl_SubgroupID % kAcross * kPartRows;
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
  const uint blocks = (p.depth + kTileColumns - 1) / kTileColumns, parts = gl_NumWorkGroups.z;
  multiply_tile(gl_WorkGroupID.z * blocks / parts * kTileColumns,
                min((gl_WorkGroupID.z + 1) * blocks / parts * kTileColumns, p.depth));
  if (!is_finished()) return;
  const bool whole = first_token + kTokens <= live && first_row + kRows <= p.n && p.n % 4 == 0;
  if (whole && uint64_t(p.bias) == 0)
    store_whole();
  else
    store_clipped();
}
