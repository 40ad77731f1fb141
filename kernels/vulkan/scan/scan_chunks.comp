// scan_chunks: the gated delta rule and Mamba 2's recurrence for prompts, eight rows at a time with the state
// in registers.
//   grid    (columns / kScanTile, runs)
//   group   kScanTile columns of a head, over all rows of a run (kernels/gpu/scan_chunks.h)
//   shared  18.3 KiB for keys of 128 values (kernels/abi/scan_chunk.h)
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/vulkan/runs.h"

layout(push_constant, scalar) uniform Push { ScanBlock p; };
layout(constant_id = 2) const uint kKeyWidth = 128;
#define kScanWidth kKeyWidth
#define FOR_BLOCKS(b) [[unroll]] for (uint b = 0; b < kKeyWidth / kScanBlock; ++b)
#define FOR_BLOCKS_THERE FOR_BLOCKS

#include "kernels/gpu/scan_chunks.h"

void main() {
  StepRuns_address runs = runs_of(p.runs);
  if (gl_WorkGroupID.y >= runs.runs.count) return;
  const StepRun run = runs.runs.run[gl_WorkGroupID.y];
  scan_tile(p, run, begins_sequence(step_of(p.step), run), state_of(p.state, run, p.state_stride),
            gl_WorkGroupID.x * kScanTile);
}
