// convert_avx2: float32 rows to the format q8, byte for byte that of convert_plain. One group is
// one row.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/convert.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  convert_rows(*(const ConvertBlock*)block, first_group, group_count);
}
