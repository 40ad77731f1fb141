// conv1d_plain: y[t][c] = activation(bias[c] + sum over j of weight[c][j] * x[t + 1 - width + j][c])
//   grid    (channels / GROUP, tokens)
//   group   GROUP threads with a channel each, over kConvRows rows of a run (kernels/gpu/conv1d.h); groups of
//           rows between return
//   shared  none
//   moves   x `width` times, which caches hold, y once, the state in and out
// The argument block is Conv1dBlock in kernels/abi/scan.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/runs.h"
#include "kernels/gpu/conv1d.h"

layout(push_constant, scalar) uniform Push { Conv1dBlock p; CHAIN_BEHIND; };

void convolve() {
  const uint c = gl_WorkGroupID.x * GROUP + gl_LocalInvocationIndex, t = gl_WorkGroupID.y;
  StepState_address step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens) || c >= p.channels) return;
  StepRuns_address runs = runs_of(p.runs);
  const StepRun run = runs.runs.run[runs.runs.run_of[t]];
  if ((t - run.first) % kConvRows != 0) return;
  conv_rows(p, run, begins_sequence(step, run), state_of(p.state, run, p.state_stride), c, t - run.first);
}

void main() {
  chain_wait(chain);
  convolve();
  chain_end(chain);
}
