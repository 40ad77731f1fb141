// gate_avx2: one group is one token.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/gate.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  gate_rows(*(const GateBlock*)block, first_group, group_count);
}
