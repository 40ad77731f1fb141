// matmul_expert_tiles_mfma: the GEMM of many tokens with experts on CDNA (matmul_expert_tiles.h).
namespace {
constexpr unsigned kRows = 128, kMostTokens = 64;
}
#include "kernels/hip/gemm/matmul_expert_tiles.h"

KERNEL(GROUP) void KERNEL_NAME(MatmulExpertBlock) { make_tiles<Tile<64, 4>>(); }
