// conv1d_avx512vnni: as conv1d_plain, with its bits, in vectors of AVX-512 over channels (simd/conv1d.h)
//   grid    (tiles of kConvTile channels, tokens)
//   group   the first row of a run, and all rows of the run one after the other; groups of other rows return
//   scratch none
//   moves   x and y once, the state in and out
// The argument block is Conv1dBlock in kernels/abi/scan.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/conv1d.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  conv_tiles(*(const Conv1dBlock*)block, first_group, group_count);
}
