// norm_plain: one group is one row. A row that is one head is normed by all threads, of several heads each by a
// subgroup.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/reduce.h"

layout(push_constant, scalar) uniform Push { NormBlock p; };

// Squares of every `stride`-th value from `first` on.
float squares(uint from, uint first, uint stride) {
  vec4 sums = vec4(0);
  for (uint i = first; i < p.width; i += 4 * stride)
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const float x = i + j * stride < p.width ? p.x.at[from + i + j * stride] : 0;
      sums[j] += x * x;
    }
  return (sums.x + sums.y) + (sums.z + sums.w);
}

void scale_by(float sum, uint from, uint to, uint first, uint stride) {
  const float factor = 1 / sqrt(sum / float(p.width) + p.epsilon);
  for (uint i = first; i < p.width; i += stride) p.y.at[to + i] = p.x.at[from + i] * factor * p.gain.at[i];
}

void main() {
  StepState_address step = step_of(p.step);
  const uint row = gl_WorkGroupID.x;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * p.x_stride, to = row * p.y_stride;
  if (p.heads == 1) {
    const float sum = group_sum(squares(from, gl_LocalInvocationIndex, GROUP));
    scale_by(sum, from, to, gl_LocalInvocationIndex, GROUP);
    return;
  }
  for (uint h = gl_SubgroupID; h < p.heads; h += gl_NumSubgroups) {
    const float sum = subgroupAdd(squares(from + h * p.width, gl_SubgroupInvocationID, gl_SubgroupSize));
    scale_by(sum, from + h * p.width, to + h * p.width, gl_SubgroupInvocationID, gl_SubgroupSize);
  }
}
