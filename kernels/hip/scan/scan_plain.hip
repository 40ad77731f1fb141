// scan_plain: the three recurrences of kernels/abi/scan.h, row by row; the definition of right.
//   grid    (columns / GROUP, runs)
//   group   GROUP threads with a column each, over all rows of a run (kernels/gpu/scan_column.h)
//   shared  none
//   moves   the state twice in and twice out for each row of the run
// Each row is done before the next one, so the bits do not depend on where a text is cut.
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/hip/runs.h"

GLSL_BEGIN
#include "kernels/gpu/scan_column.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(ScanBlock p) {
  const uint column = group_x() * GROUP + thread_x();
  const auto runs = runs_of(p.runs);
  if (group_y() >= runs->count || column >= p.heads * p.value_width) return;
  const StepRun run = runs->run[group_y()];
  scan_column(p, run, begins_sequence(step_of(p.step), run), state_of(p.state, run, p.state_stride), column);
}
