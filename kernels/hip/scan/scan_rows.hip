// scan_rows: the gated delta rule and Mamba 2's recurrence with the state in registers.
//   grid    (columns / kScanTile, runs)
//   group   kScanTile columns of a head, over all rows of a run (kernels/gpu/scan_rows.h)
//   shared  14 KiB
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/hip/runs.h"

// Eight values are there or not together, so that the loop can be unrolled.
#define FOR_OWN(i)                                                                 \
  UNROLL for (uint e = 0; e < kScanOwn; e += 8) if (e < p.key_width / kScanSlices) \
      UNROLL for (uint i = e; i < e + 8; ++i)

GLSL_BEGIN
#include "kernels/gpu/scan_rows.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(ScanBlock p) {
  const auto runs = runs_of(p.runs);
  if (group_y() >= runs->count) return;
  const StepRun run = runs->run[group_y()];
  scan_tile(p, run, begins_sequence(step_of(p.step), run), state_of(p.state, run, p.state_stride),
            group_x() * kScanTile);
}
