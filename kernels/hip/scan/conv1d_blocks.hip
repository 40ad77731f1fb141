// conv1d_blocks: conv1d for prompts, whose inputs and weights a thread loads once and keeps in registers.
//   y[t][c] = activation(bias[c] + sum over j of weight[c][j] * x[t + 1 - width + j][c])
//   grid    (channels / GROUP, blocks of kConvRows rows of all runs, one after the other)
//   group   GROUP threads with a channel each, over a block. The first block of a run also reads and writes
//           the state (kernels/gpu/conv1d.h)
//   shared  none
//   moves   x once, and width - 1 rows more for each block; y once, the state in and out
// The width is known to the block alone, so a weight that it lacks is skipped for all rows together.
// The argument block is Conv1dBlock in kernels/abi/scan.h.
#include "kernels/hip/runs.h"

GLSL_BEGIN
#include "kernels/gpu/conv1d.h"

#define FOR_WEIGHTS(j) UNROLL for (uint j = 0; j < kMaxConvWidth; ++j) if (j < p.width)
#define kConvInputs (kConvRows + kMaxConvWidth - 1)

void conv_block(Conv1dBlock p, StepRun run, bool begins, float_address state, uint c, uint from) {
  const uint rows = min(run.count - from, uint(kConvRows)), last = rows + p.width - 2;
  const float bias = IS(p.bias) ? AT(p.bias, c) : 0.0f;
  float weight[kMaxConvWidth], x[kConvInputs], sum[kConvRows];
  FOR_WEIGHTS(j) weight[j] = AT(p.weight, c * p.width + j);
  // The last input stands in for those behind it, of which rows follow that are not stored.
  UNROLL for (uint i = 0; i < kConvInputs; ++i) {
    const uint input = from + min(i, last);
    x[i] = i + 1 < kMaxConvWidth ? conv_input(p, run, begins, state, c, input)
                                 : AT(p.x, (run.first + input + 1 - p.width) * p.x_stride + c);
  }
  UNROLL for (uint i = 0; i < kConvRows; ++i) sum[i] = bias;
  FOR_WEIGHTS(j) {
    UNROLL for (uint i = 0; i < kConvRows; ++i) sum[i] += weight[j] * x[i + j];
  }
  UNROLL for (uint i = 0; i < kConvRows; ++i) {
    if (i < rows)
      AT(p.y, (run.first + from + i) * p.y_stride + c) = p.silu != 0 ? sum[i] * logistic(sum[i]) : sum[i];
  }
  if (from == 0) conv_keep(p, run, begins, state, c);
}
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(Conv1dBlock p) {
  const uint c = group_x() * GROUP + thread_x();
  if (c >= p.channels) return;
  const auto runs = runs_of(p.runs);
  uint block = group_y();
  for (uint r = 0; r < runs->count; ++r) {
    const StepRun run = runs->run[r];
    const uint blocks = (run.count + kConvRows - 1) / kConvRows;
    if (block < blocks) {
      const bool begins = begins_sequence(step_of(p.step), run);
      return conv_block(p, run, begins, state_of(p.state, run, p.state_stride), c, block * kConvRows);
    }
    block -= blocks;
  }
}
