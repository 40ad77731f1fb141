// conv1d_blocks: conv1d for prompts, whose inputs and weights a thread loads once and keeps in registers.
//   y[t][c] = activation(bias[c] + sum over j of weight[c][j] * x[t + 1 - width + j][c])
//   grid    (channels / GROUP, blocks of kConvRows rows of all runs, one after the other)
//   group   GROUP threads with a channel each, over a block. The first block of a run also reads and writes
//           the state (kernels/gpu/conv1d.h)
//   shared  none
//   moves   x once, and width - 1 rows more for each block; y once, the state in and out
// The argument block is Conv1dBlock in kernels/abi/scan.h.
#include "kernels/vulkan/runs.h"
#include "kernels/gpu/conv1d.h"

layout(push_constant, scalar) uniform Push { Conv1dBlock p; };
layout(constant_id = 2) const uint kWidth = 4;
const uint kInputs = kConvRows + kWidth - 1;

void conv_block(StepRun run, uint c, uint from) {
  const bool begins = begins_sequence(step_of(p.step), run);
  float_address state = state_of(p.state, run, p.state_stride);
  const uint rows = min(run.count - from, uint(kConvRows));
  const float bias = IS(p.bias) ? AT(p.bias, c) : 0.0f;
  float weight[kWidth], x[kInputs];
  [[unroll]] for (uint j = 0; j < kWidth; ++j) weight[j] = AT(p.weight, c * kWidth + j);
  [[unroll]] for (uint i = 0; i < kInputs; ++i) {
    x[i] = 0.0f;
    if (i < rows + kWidth - 1) x[i] = conv_input(p, run, begins, state, c, from + i);
  }
  [[unroll]] for (uint i = 0; i < kConvRows; ++i) {
    float sum = bias;
    [[unroll]] for (uint j = 0; j < kWidth; ++j) sum += weight[j] * x[i + j];
    if (i < rows) AT(p.y, (run.first + from + i) * p.y_stride + c) = p.silu != 0 ? sum * logistic(sum) : sum;
  }
  if (from == 0) conv_keep(p, run, begins, state, c);
}

void main() {
  const uint c = gl_WorkGroupID.x * GROUP + gl_LocalInvocationIndex;
  if (c >= p.channels) return;
  StepRuns_address runs = runs_of(p.runs);
  const uint count = runs.runs.count;
  uint block = gl_WorkGroupID.y;
  for (uint r = 0; r < count; ++r) {
    const StepRun run = runs.runs.run[r];
    const uint blocks = (run.count + kConvRows - 1) / kConvRows;
    if (block < blocks) {
      conv_block(run, c, block * kConvRows);
      return;
    }
    block -= blocks;
  }
}
