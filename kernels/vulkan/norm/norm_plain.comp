// norm_plain: y[i][h] = x[i][h] / rms(x[i][h]) * gain, or residual[i] + scale * that
//   x [rows][heads][width] float32
//   grid    (rows)
//   group   GROUP threads. All of them normalise a row of one head; of several heads, each subgroup
//           normalises one at a time
//   shared  GROUP * 2 bytes for sums
//   moves   x once, or of several heads, and behind the first kBehind fours of a row, twice; y once; the
//           residual once; 1.75 bytes a value for y in q8x16, 2 bytes for y as float16
// The argument block is NormBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/reduce.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/norm/held.h"

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

// Stores every `stride`-th value of a head, from `first` on.
void scale_by(float factor, uint from, uint to, uint first, uint stride) {
  for (uint i = first; i < p.width; i += stride) {
    const float y = p.x.at[from + i] * factor * p.gain.at[i];
    p.y.at[to + i] = uint64_t(p.residual) == 0 ? y : p.residual.at[to + i] + p.scale * y;
    store_half(p.halves, to + i, y);
  }
}

// The same for four fours of a row of one head, from `first` on every GROUP-th, and y in q8x16. The loads of
// each operand are under way together; four lanes together round 16 values.
void scale_fours(vec4 x[4], float factor, uint row, uint to, uint first) {
  const uint count = p.width / 4;
  vec4 y[4];
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    const uint at = min(first + j * GROUP, count - 1);
    y[j] = x[j] * factor * four(p.gain, at);
    if (uint64_t(p.residual) != 0) y[j] = four(p.residual, to / 4 + at) + p.scale * y[j];
  }
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    const uint at = first + j * GROUP;
    if (at >= count) break;
    vec4_address(uint64_t(p.y)).at[to / 4 + at] = y[j];
    store_halves(p.halves, to + at * 4, y[j]);
    if (uint64_t(p.rounded) == 0) continue;
    const vec4 values = uint64_t(p.next_gain) == 0 ? y[j] : y[j] * four(p.next_gain, at);
    store_q8x16(uint64_t(p.rounded) + uint64_t(row) * q8x16_row_bytes(p.width), p.width, at, values,
                dot(y[j], y[j]));
  }
}

// A row of one head, four values at a time. Between two reads of a row there would be those of a thousand
// other groups, which is more than the L2 cache of a large GPU keeps.
void normalise_fours(uint row, uint from, uint to) {
  const uint count = p.width / 4, thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  vec4 held[kHeld], sums = vec4(0), x[4];
  hold(p.x, from / 4, thread, count, held);
  [[unroll]] for (uint j = 0; j < kHeld; ++j) sums += held[j] * held[j];
  for (uint at = thread + kBehind; at < count; at += GROUP) {
    const vec4 values = four(p.x, from / 4 + at);
    sums += values * values;
  }
  const float factor = factor_of(group_sum((sums.x + sums.y) + (sums.z + sums.w)));
  [[unroll]] for (uint h = 0; h < kHeld; h += 4) {
    if (h * GROUP >= count) break;
    [[unroll]] for (uint j = 0; j < 4; ++j) x[j] = held[h + j];
    scale_fours(x, factor, row, to, thread + h * GROUP);
  }
  for (uint first = thread + kBehind; first < count; first += 4 * GROUP) {
    [[unroll]] for (uint j = 0; j < 4; ++j) x[j] = four(p.x, from / 4 + min(first + j * GROUP, count - 1));
    scale_fours(x, factor, row, to, first);
  }
}

void normalise_row() {
  StepState_address step = step_of(p.step);
  const uint row = gl_WorkGroupID.x;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * p.x_stride, to = row * p.y_stride;
  if (p.heads == 1) {
    if ((p.width | p.x_stride | p.y_stride) % 4 == 0) {
      normalise_fours(row, from, to);
      return;
    }
    const float factor = factor_of(group_sum(squares(from, gl_LocalInvocationIndex, GROUP)));
    scale_by(factor, from, to, gl_LocalInvocationIndex, GROUP);
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
