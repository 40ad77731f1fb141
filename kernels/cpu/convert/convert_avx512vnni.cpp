// convert_avx512vnni: y = x in the activation format q8 (kernels/abi/q8.h), byte for byte as convert_plain
//   x [rows][depth] float32
//   grid    (rows)
//   group   one row
//   scratch none
//   moves   4 bytes of x and 1.25 bytes of y a value
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/convert.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  convert_rows(*(const ConvertBlock*)block, first_group, group_count);
}
