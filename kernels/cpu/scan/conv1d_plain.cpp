// conv1d_plain: y[t][c] = activation(bias[c] + sum over j of weight[c][j] * x[t + 1 - width + j][c])
//   grid    (tiles of kConvTile channels, tokens)
//   group   the first row of a run, and all rows of the run one after the other; groups of other rows return
//   scratch none; a row and its predecessors lie in x or in the state, which is written last
//   moves   x and y once, the state in and out
// Sums begin with the bias and run from the oldest row, so the bits do not depend on where a text is cut.
// The argument block is Conv1dBlock in kernels/abi/scan.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/conv1d.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  conv_tiles(*(const Conv1dBlock*)block, first_group, group_count);
}
