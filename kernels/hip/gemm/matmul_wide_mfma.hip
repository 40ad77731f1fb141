// matmul_wide_mfma: the GEMM of hundreds of tokens on CDNA (matmul_tiles.h), in tiles of all shared memory.
namespace {
constexpr unsigned kRows = 256, kMostTokens = 256;
}
#include "kernels/hip/gemm/ping_pong.h"

KERNEL(GROUP) void KERNEL_NAME(MatmulTileBlock p) {
  quant_begin();
  make_tile_in_turns<Tile<256, 4>>(p);
}
