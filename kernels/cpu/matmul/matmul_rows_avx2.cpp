// matmul_rows_avx2: few tokens times rows of W, alone and in the fused sequences of decode.
#include "kernels/cpu/simd/avx2/type.h"
#include "kernels/cpu/simd/rows.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_rows<Rows>(*(const MatmulBlock*)block, first_group, group_count, scratch);
}
