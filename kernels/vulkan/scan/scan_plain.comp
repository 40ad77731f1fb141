// scan_plain: the three recurrences of kernels/abi/scan.h, row by row; the definition of right.
//   grid    (columns / GROUP, runs)
//   group   GROUP threads with a column each, over all rows of a run (kernels/gpu/scan_column.h)
//   shared  none
//   moves   the state twice in and twice out for each row of the run
// Each row is done before the next one, so the bits do not depend on where a text is cut.
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/vulkan/runs.h"
#include "kernels/gpu/scan_column.h"

layout(push_constant, scalar) uniform Push { ScanBlock p; };

void main() {
  const uint column = gl_WorkGroupID.x * GROUP + gl_LocalInvocationIndex;
  StepRuns_address runs = runs_of(p.runs);
  if (gl_WorkGroupID.y >= runs.runs.count || column >= p.heads * p.value_width) return;
  const StepRun run = runs.runs.run[gl_WorkGroupID.y];
  scan_column(p, run, begins_sequence(step_of(p.step), run), state_of(p.state, run, p.state_stride), column);
}
