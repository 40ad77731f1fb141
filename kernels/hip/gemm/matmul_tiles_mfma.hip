// matmul_tiles_mfma: the GEMM of many tokens on CDNA (matmul_tiles.h).
namespace {
constexpr unsigned kRows = 128, kMostTokens = 128;
}
#include "kernels/hip/gemm/matmul_tiles.h"

KERNEL(GROUP) void KERNEL_NAME(MatmulTileBlock p) {
  quant_begin();
  if (p.tile_tokens == 16)
    make_tile<Tile<16, 4>>(p);
  else if (p.tile_tokens == 64)
    make_tile<Tile<64, 4>>(p);
  else
    make_tile<Tile<128, 2>>(p);
}
