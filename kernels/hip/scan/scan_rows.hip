// scan_rows: the gated delta rule and Mamba 2's recurrence with the state in registers.
//   grid    (columns / kScanTile, runs)
//   group   kScanTile columns of a head, over all rows of a run (kernels/gpu/scan_rows.h)
//   shared  14 KiB
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/hip/runs.h"

#define kOwn (p.key_width / kScanSlices)
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
