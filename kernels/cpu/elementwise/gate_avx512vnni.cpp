// gate_avx512vnni: y[t][i] = activation(gate[t][i]) * up[t][i]     [tokens][width] float32
//   grid    (tokens)
//   group   one token, with vectors of AVX-512 (simd/gate.h)
//   scratch none
//   moves   gate, up and y once
// The argument block is GateBlock in kernels/abi/ops.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/gate.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  gate_rows(*(const GateBlock*)block, first_group, group_count);
}
