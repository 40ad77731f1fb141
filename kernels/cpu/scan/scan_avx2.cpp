// scan_avx2: the three recurrences of kernels/abi/scan.h, in chunks of rows.
//   grid    (tiles of kScanTile columns, runs)
//   group   the columns of a tile over all rows of a run, with vectors of AVX2 (simd/scan.h)
//   scratch none
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/scan.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  scan_tiles(*(const ScanBlock*)block, first_group, group_count);
}
