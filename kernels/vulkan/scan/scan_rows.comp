// scan_rows: the gated delta rule and Mamba 2's recurrence with the state in registers.
//   grid    (columns / kScanTile, runs)
//   group   kScanTile columns of a head, over all rows of a run (kernels/gpu/scan_rows.h)
//   shared  14 KiB
//   moves   the state once in and once out for each run, keys and queries once for each tile
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/runs.h"

layout(push_constant, scalar) uniform Push { ScanBlock p; };
layout(constant_id = 2) const uint kKeyWidth = 128;
layout(constant_id = 3) const uint kGroups = 1;
const uint kOwn = kKeyWidth / 8;  // kScanSlices
#define FOR_OWN(i) [[unroll]] for (uint i = 0; i < kOwn; ++i)

#include "kernels/gpu/scan_rows.h"

// The block with the two constants in whose place the address of the chain's cell may stand.
ScanBlock whole_block() {
  ScanBlock block = p;
  block.groups = kGroups;
  block.key_width = kKeyWidth;
  return block;
}

void scan() {
  StepRuns_address runs = runs_of(p.runs);
  if (gl_WorkGroupID.y >= runs.runs.count) return;
  const StepRun run = runs.runs.run[gl_WorkGroupID.y];
  scan_tile(whole_block(), run, begins_sequence(step_of(p.step), run),
            state_of(p.state, run, p.state_stride), gl_WorkGroupID.x * kScanTile);
}

void main() {
  const uint64_t chain = packUint2x32(uvec2(p.groups, p.key_width));
  chain_wait(chain);
  scan();
  chain_end(chain);
}
