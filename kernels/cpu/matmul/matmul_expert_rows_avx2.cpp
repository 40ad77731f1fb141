// matmul_expert_rows_avx2: slots times rows of their experts.
#include "kernels/cpu/simd/avx2/type.h"
#include "kernels/cpu/simd/expert_rows.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  matmul_expert_rows<Rows, WEIGHT>(*(const MatmulExpertBlock*)block, first_group, group_count, scratch);
}
