// scan_chunks: the gated delta rule and Mamba 2's recurrence for prompts, eight rows at a time with the state
// in registers.
//   grid    (columns / kScanTile, runs)
//   group   kScanTile columns of a head, over all rows of a run (kernels/gpu/scan_chunks.h)
//   shared  18.3 KiB: the most that keys of kScanWidth values take (kernels/abi/scan_chunk.h)
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/hip/runs.h"

#define kScanWidth 128  // SHARED of its line in kernels/hip/CMakeLists.txt lets no wider keys in
// With a condition in all loops the compiler would make the body once for each number of blocks.
#define FOR_BLOCKS(b) UNROLL for (uint b = 0; b < kScanWidth / kScanBlock; ++b)
#define FOR_BLOCKS_THERE(b) FOR_BLOCKS(b) if (b < p.key_width / kScanBlock)

GLSL_BEGIN
#include "kernels/gpu/scan_chunks.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(ScanBlock p) {
  const auto runs = runs_of(p.runs);
  if (group_y() >= runs->count) return;
  const StepRun run = runs->run[group_y()];
  scan_tile(p, run, begins_sequence(step_of(p.step), run), state_of(p.state, run, p.state_stride),
            group_x() * kScanTile);
}
