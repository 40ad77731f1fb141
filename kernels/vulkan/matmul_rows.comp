// matmul of one token, alone or with what is fused around it (MatmulBlock, kernels/abi/ops.h).
//   grid   as many groups as the device runs at once, at most one for `tile` rows
//   group  subgroups that make pairs of rows in turn (rows.h)
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulBlock p; };

#include "kernels/vulkan/rows_x.h"
#include "kernels/vulkan/rows_y.h"

void main() {
  if (live_rows(step_of(p.step), p.rows_of) == 0) return;
  const uint all = gl_NumWorkGroups.x * gl_NumSubgroups, lane = gl_SubgroupInvocationID;
  const uint pairs = pair_count();
  const uint64_t row_bytes = quant_row_bytes(kDepth);
  // Neighbouring pairs go to different groups, so that what does not fill a round is spread over the device.
  uint pair = gl_SubgroupID * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  uint64_t row0, row1;
  Weights w0, w1;
  if (pair < pairs) {
    weight_rows(pair, row_bytes, row0, row1);
    if (lane < kUnits) w0 = dot_load(row0, lane), w1 = dot_load(row1, lane);
  }
  const float factor = stage_x(uint64_t(p.x) + uint64_t(source_row(step_of(p.step), p.rows_of, 0)) * kDepth * 4, uint64_t(p.gain), p.epsilon);
  while (pair < pairs) {
    const uint next = pair + all;
    uint64_t next0 = row0, next1 = row1;
    if (next < pairs) weight_rows(next, row_bytes, next0, next1);
    float y0 = 0, y1 = 0;
    for (uint unit = lane; unit < kUnits; unit += kLanes) {
      const bool more = unit + kLanes < kUnits;
      const Weights now0 = w0, now1 = w1;
      if (more || next < pairs) {
        const uint to_come = more ? unit + kLanes : lane;
        w0 = dot_load(more ? row0 : next0, to_come);
        w1 = dot_load(more ? row1 : next1, to_come);
      }
      const Values x = values_of(unit);
      y0 += dot_unit(now0, unit, x);
      y1 += dot_unit(now1, unit, x);
    }
    y0 = subgroupAdd(y0) * factor;
    y1 = subgroupAdd(y1) * factor;
    if (lane == 0) finish_pair(0, pair, y0, y1);
    pair = next, row0 = next0, row1 = next1;
  }
}
