// sum_plain: y[i] = the sum over j of x[i][j], modulo 2^32     x [pieces][width] uint
//   grid    (pieces)
//   group   one piece
//   scratch none
//   moves   x once: it measures bandwidth
// The argument block is SumBlock in kernels/abi/ops.h.
#include "kernels/abi/ops.h"
#include "kernels/cpu/scratch.h"

typedef uint32_t Words __attribute__((vector_size(16), aligned(4), may_alias));

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const SumBlock& b = *(const SumBlock*)block;
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const Words* x = (const Words*)b.x + uint64_t(group) * (b.width / 4);
    Words sums[4] = {};  // several, so that none waits for the one before
    for (uint32_t i = 0; i < b.width / 4; i += 4)
      for (uint32_t j = 0; j < 4; ++j) sums[j] += x[i + j];
    const Words all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    ((uint32_t*)b.y)[group] = all[0] + all[1] + all[2] + all[3];
  }
}
