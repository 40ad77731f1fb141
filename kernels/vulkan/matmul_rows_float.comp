// matmul of a few tokens with weights that are floats, alone or with a residual: x and sums in float32. After the first
// token the caches have a group's weights.
//   grid   (kRows rows of y to a group)
//   group  subgroups in a grid of kSets x kSlices: each makes kStreams rows, that share the values of x which its lanes
//          hold, over its part of the columns; the first kRows threads add up the parts
//
// Lanes take units of 8 columns in turn. dot/<type>.h has
//   Weights                  a unit as it is loaded
//   dot_load(row, unit)      unit `unit` of the row at address `row`, a multiple of 16
//   dot_unit(weights, x)     the sum over the unit
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulBlock p; };
layout(constant_id = 0) const uint kThreads = GROUP;
layout(constant_id = 2) const uint kDepth = 256;

const uint kRows = 16, kStreams = 4;
const uint kSubgroups = kThreads / kLanes;
const uint kNeeded = kRows / kStreams;
const uint kSlices = kSubgroups > kNeeded ? kSubgroups / kNeeded : 1, kSets = kSubgroups / kSlices;

shared float parts[kSlices * kRows];

// Rows first .. first + kStreams - 1 of the group times x, over the columns of slice `slice`.
void make(uint64_t x, uint first, uint slice) {
  uint64_t rows[kStreams];
  float sums[kStreams];
  [[unroll]] for (uint i = 0; i < kStreams; ++i) {
    rows[i] = uint64_t(p.weight) + min(gl_WorkGroupID.x * kRows + first + i, p.n - 1) * quant_row_bytes(kDepth);
    sums[i] = 0;
  }
  for (uint unit = slice * kLanes + gl_SubgroupInvocationID; unit < kDepth / 8; unit += kSlices * kLanes) {
    Weights w[kStreams];
    [[unroll]] for (uint i = 0; i < kStreams; ++i) w[i] = dot_load(rows[i], unit);
    const uint64_t at = x + unit * 32;
    const Values values = Values(uintBitsToFloat(load_16_of_16(at)), uintBitsToFloat(load_16_of_16(at + 16)));
    [[unroll]] for (uint i = 0; i < kStreams; ++i) sums[i] += dot_unit(w[i], values);
  }
  [[unroll]] for (uint i = 0; i < kStreams; ++i) {
    const float sum = lanes_sum(sums[i]);
    if (gl_SubgroupInvocationID == 0) parts[slice * kRows + first + i] = sum;
  }
}

void finish(uint t) {
  const uint i = gl_LocalInvocationIndex, row = gl_WorkGroupID.x * kRows + i;
  if (i >= kRows || row >= p.n) return;
  float y = uint64_t(p.bias) != 0 ? p.bias.at[row] : 0;
  [[unroll]] for (uint slice = 0; slice < kSlices; ++slice) y += parts[slice * kRows + i];
  if (uint64_t(p.residual) != 0) y += p.residual.at[t * p.n + row];
  p.y.at[t * p.n + row] = y;
}

void main() {
  StepState_address step = step_of(p.step);
  const uint live = live_rows(step, p.rows_of);
  [[dont_unroll]] for (uint t = 0; t < live; ++t) {
    const uint64_t x = uint64_t(p.x) + uint64_t(source_row(step, p.rows_of, t)) * kDepth * 4;
    for (uint set = gl_SubgroupID / kSlices; set * kStreams < kRows; set += kSets)
      make(x, set * kStreams, gl_SubgroupID % kSlices);
    barrier();
    finish(t);
    barrier();
  }
}
