// conv1d_gated: y[t][c] = gate[t][c] * (bias[c] + sum over j of weight[c][j] * u[t + 1 - kWidth + j][c]),
// where u = x * by
//   grid    (channels / (4 * GROUP), tokens)
//   group   GROUP threads with four neighbouring channels each, over kConvRows rows of a run; groups of rows
//           between return
//   shared  none
//   moves   x and by kWidth times, which caches hold, gate and y once, the state in and out; 1.75 bytes a
//           value for y in q8x16, 2 bytes for y as float16
// The argument block is Conv1dGatedBlock in kernels/abi/sequences.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/abi/sequences.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/runs.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { Conv1dGatedBlock p; CHAIN_BEHIND; };

layout(constant_id = 2) const uint kWidth = 3;
const uint kConvRows = 16;  // no less than kMaxConvWidth - 1

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at / 4]; }
vec4 four_of_state(float_address state, uint at) {
  return vec4(state.at[at], state.at[at + 1], state.at[at + 2], state.at[at + 3]);
}

// u of row i of the run, counted from the first one that the state has.
vec4 input_of(StepRun run, bool begins, float_address state, uint c, uint i) {
  if (i + 1 < kWidth) return begins ? vec4(0) : four_of_state(state, i * p.channels + c);
  const uint at = (run.first + i + 1 - kWidth) * p.stride + c;
  return four(p.x, at) * four(p.by, at);
}

void store(uint t, uint c, vec4 y) {
  vec4_address(uint64_t(p.y)).at[(t * p.channels + c) / 4] = y;
  store_halves(p.halves, t * p.channels + c, y);
  if (uint64_t(p.rounded) == 0) return;
  const uint64_t row = uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.channels);
  store_q8x16(row, p.channels, c / 4, y, dot(y, y));
}

// Rows from .. from + kConvRows - 1 of a run. The first ones also read and write its state.
void convolve_rows(StepRun run, bool begins, float_address state, uint c, uint from, vec4 weight[kWidth]) {
  const vec4 bias = uint64_t(p.bias) != 0 ? four(p.bias, c) : vec4(0);
  for (uint i = from; i < min(from + kConvRows, run.count); ++i) {
    const uint t = run.first + i;
    const vec4 gate = four(p.gate, t * p.stride + c);
    vec4 sum = bias;
    [[unroll]] for (uint j = 0; j < kWidth; ++j)
      sum += weight[j] * input_of(run, begins, state, c, i + j);
    store(t, c, gate * sum);
  }
  if (from != 0) return;
  for (uint j = 0; j + 1 < kWidth; ++j) {
    const vec4 u = input_of(run, begins, state, c, run.count + j);
    [[unroll]] for (uint k = 0; k < 4; ++k) state.at[j * p.channels + c + k] = u[k];
  }
}

void convolve(uint c, vec4 weight[kWidth]) {
  const uint t = gl_WorkGroupID.y;
  StepState_address step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens) || c >= p.channels) return;
  StepRuns_address runs = runs_of(p.runs);
  const StepRun run = runs.runs.run[runs.runs.run_of[t]];
  if ((t - run.first) % kConvRows != 0) return;
  convolve_rows(run, begins_sequence(step, run), state_of(p.state, run, p.state_stride), c, t - run.first,
                weight);
}

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;  // neighbours round together
  const uint c = (gl_WorkGroupID.x * GROUP + thread) * 4, loaded = min(c, p.channels - 4);
  vec4 weight[kWidth];
  [[unroll]] for (uint j = 0; j < kWidth; ++j)
    [[unroll]] for (uint k = 0; k < 4; ++k) weight[j][k] = p.weight.at[(loaded + k) * kWidth + j];
  chain_wait(chain);
  convolve(c, weight);
  chain_end(chain);
}
