// norm_plain: y[i][h] = x[i][h] / rms(x[i][h]) * gain, or residual[i] + scale * that
//   x [rows][heads][width] float32
//   grid    (rows)
//   group   GROUP threads. All of them normalise a row of one head; of several heads, each subgroup
//           normalises one at a time
//   shared  GROUP * 2 bytes for sums
//   moves   x twice, y once; the residual once; 1.75 bytes a value for y in q8x16, 2 bytes for y as float16
// The argument block is NormBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/reduce.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/halves.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { NormBlock p; CHAIN_BEHIND; };

// The sum of squares of every `stride`-th value of a head, from `first` on.
float squares(uint from, uint first, uint stride) {
  vec4 sums = vec4(0);
  for (uint i = first; i < p.width; i += 4 * stride)
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const float x = i + j * stride < p.width ? p.x.at[from + i + j * stride] : 0;
      sums[j] += x * x;
    }
  return (sums.x + sums.y) + (sums.z + sums.w);
}

float factor_of(float sum) { return 1 / sqrt(sum / float(p.width) + p.epsilon); }

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

// Stores every `stride`-th value of a head, from `first` on.
void scale_by(float factor, uint from, uint to, uint first, uint stride) {
  for (uint i = first; i < p.width; i += stride) {
    const float y = p.x.at[from + i] * factor * p.gain.at[i];
    p.y.at[to + i] = uint64_t(p.residual) == 0 ? y : p.residual.at[to + i] + p.scale * y;
    store_half(p.halves, to + i, y);
  }
}

// The same for a row of one head, four values at a time, and y in q8x16. Four loads of 16 bytes are under way
// in each operand; four lanes together round 16 values.
void scale_fours(float factor, uint row, uint from, uint to) {
  const uint count = p.width / 4, thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  for (uint i = thread; i < count; i += 4 * GROUP) {
    vec4 y[4];
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const uint at = min(i + j * GROUP, count - 1);
      y[j] = four(p.x, from / 4 + at) * factor * four(p.gain, at);
      if (uint64_t(p.residual) != 0) y[j] = four(p.residual, to / 4 + at) + p.scale * y[j];
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const uint at = i + j * GROUP;
      if (at >= count) break;
      vec4_address(uint64_t(p.y)).at[to / 4 + at] = y[j];
      store_halves(p.halves, to + at * 4, y[j]);
      if (uint64_t(p.rounded) == 0) continue;
      const vec4 values = uint64_t(p.next_gain) == 0 ? y[j] : y[j] * four(p.next_gain, at);
      store_q8x16(uint64_t(p.rounded) + uint64_t(row) * q8x16_row_bytes(p.width), p.width, at, values,
                  dot(y[j], y[j]));
    }
  }
}

void normalise_row() {
  StepState_address step = step_of(p.step);
  const uint row = gl_WorkGroupID.x;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * p.x_stride, to = row * p.y_stride;
  if (p.heads == 1) {
    const float factor = factor_of(group_sum(squares(from, gl_LocalInvocationIndex, GROUP)));
    if ((p.width | p.x_stride | p.y_stride) % 4 == 0) scale_fours(factor, row, from, to);
    else scale_by(factor, from, to, gl_LocalInvocationIndex, GROUP);
    return;
  }
  for (uint h = gl_SubgroupID; h < p.heads; h += gl_NumSubgroups) {
    const float sum = subgroupAdd(squares(from + h * p.width, gl_SubgroupInvocationID, gl_SubgroupSize));
    scale_by(factor_of(sum), from + h * p.width, to + h * p.width, gl_SubgroupInvocationID, gl_SubgroupSize);
  }
}

void main() {
  chain_wait(chain);
  normalise_row();
  chain_end(chain);
}
