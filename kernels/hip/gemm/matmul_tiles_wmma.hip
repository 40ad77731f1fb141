// matmul_tiles_wmma: the GEMM of many tokens on RDNA3 and RDNA4 (matmul_tiles.h).
namespace {
constexpr unsigned kRows = 128, kMostTokens = 128;
}
#include "kernels/hip/gemm/matmul_tiles.h"

KERNEL(GROUP) void KERNEL_NAME(MatmulTileBlock p) {
  quant_begin();
  if (p.tile_tokens == 16)
    make_tile<Tile<16, 8>>(p);
  else if (p.tile_tokens == 64)
    make_tile<Tile<64, 4>>(p);
  else
    make_tile<Tile<128, 4>>(p);
}
