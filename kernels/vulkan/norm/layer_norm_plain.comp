// layer_norm_plain: y[i][h] = (x[i][h] - mean) / sqrt(variance + epsilon) * gain[h] + bias[h]     float32
//   grid    (rows)
//   group   GROUP threads, which together normalise one head of the row after the other
//   shared  GROUP * 2 bytes for sums
//   moves   x and y once; what lies behind the first kBehind fours of a head three times, as all of x where
//           heads are no multiple of four values
// The argument block is LayerNormBlock in kernels/abi/layer_norm.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/abi/layer_norm.h"
#include "kernels/vulkan/norm/held.h"
#include "kernels/vulkan/reduce.h"

layout(push_constant, scalar) uniform Push { LayerNormBlock p; CHAIN_BEHIND; };

// Normalises the head at `from`; its gain and bias begin at `gains`.
void normalise(uint from, uint gains, uint to) {
  const uint first = gl_LocalInvocationIndex;
  float sum = 0, squares = 0;
  for (uint i = first; i < p.width; i += GROUP) sum += p.x.at[from + i];
  const float mean = group_sum(sum) / float(p.width);
  for (uint i = first; i < p.width; i += GROUP) {
    const float apart = p.x.at[from + i] - mean;
    squares += apart * apart;
  }
  const float factor = 1 / sqrt(group_sum(squares) / float(p.width) + p.epsilon);
  for (uint i = first; i < p.width; i += GROUP) {
    float y = (p.x.at[from + i] - mean) * factor;
    if (uint64_t(p.gain) != 0) y *= p.gain.at[gains + i];
    if (uint64_t(p.bias) != 0) y += p.bias.at[gains + i];
    p.y.at[to + i] = y;
  }
}

vec4 scaled(vec4 x, float mean, float factor, uint gain) {
  vec4 y = (x - mean) * factor;
  if (uint64_t(p.gain) != 0) y *= four(p.gain, gain);
  if (uint64_t(p.bias) != 0) y += four(p.bias, gain);
  return y;
}

float sum_of(vec4 x) { return (x.x + x.y) + (x.z + x.w); }

// The same four values at a time, where from, gains and to are fours.
void normalise_fours(uint from, uint gains, uint to) {
  const uint thread = gl_LocalInvocationIndex, count = p.width / 4;
  vec4 held[kHeld], sum = vec4(0), squares = vec4(0);
  hold(p.x, from, thread, count, held);
  [[unroll]] for (uint j = 0; j < kHeld; ++j) sum += held[j];
  for (uint at = thread + kBehind; at < count; at += GROUP) sum += four(p.x, from + at);
  const float mean = group_sum(sum_of(sum)) / float(p.width);
  [[unroll]] for (uint j = 0; j < kHeld; ++j)
    if (thread + j * GROUP < count) squares += (held[j] - mean) * (held[j] - mean);
  for (uint at = thread + kBehind; at < count; at += GROUP) {
    const vec4 apart = four(p.x, from + at) - mean;
    squares += apart * apart;
  }
  const float factor = 1 / sqrt(group_sum(sum_of(squares)) / float(p.width) + p.epsilon);
  vec4_address y = vec4_address(uint64_t(p.y) + uint64_t(to) * 16);
  [[unroll]] for (uint j = 0; j < kHeld; ++j) {
    const uint at = thread + j * GROUP;
    if (at < count) y.at[at] = scaled(held[j], mean, factor, gains + at);
  }
  for (uint at = thread + kBehind; at < count; at += GROUP)
    y.at[at] = scaled(four(p.x, from + at), mean, factor, gains + at);
}

void normalise_row() {
  StepState_address step = step_of(p.step);
  const uint row = gl_WorkGroupID.x, values = p.heads * p.width;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * values;
  for (uint gains = 0; gains < values; gains += p.width)
    if (p.width % 4 == 0) normalise_fours((from + gains) / 4, gains / 4, (row * values + gains) / 4);
    else normalise(from + gains, gains, row * values + gains);
}

void main() {
  chain_wait(chain);
  normalise_row();
  chain_end(chain);
}
