// matmul_tiles_avx2: many tokens in the format q8 times W, alone or added to a residual.
#include "kernels/cpu/simd/avx2/type.h"
#include "kernels/cpu/simd/tiles.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_tiles<Tiles>(*(const MatmulBlock*)block, first_group, group_count, scratch);
}
