// How the kernels with states find a run's rows and its state, and the words of kernels/gpu/scan.h.
#ifndef GRETA_VULKAN_RUNS_H
#define GRETA_VULKAN_RUNS_H
#extension GL_EXT_control_flow_attributes : require
#include "kernels/abi/scan.h"
#include "kernels/gpu/math.h"
#include "kernels/vulkan/step.h"

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer StepRuns_address {
  StepRuns runs;
};
StepRuns_address runs_of(byte_address runs) { return StepRuns_address(runs); }

// Whether the run begins its sequence, so that its state is zeros whatever the memory holds.
bool begins_sequence(StepState_address step, StepRun run) {
  return step.state.row[run.first].position == 0;
}

float_address state_of(float_address states, StepRun run, uint stride) {
  return float_address(uint64_t(states) + uint64_t(run.state) * stride * 4);
}

uint made_anew(uint value) { return value; }

#define AT(address, i) address.at[i]
#define MOVED(address, n) float_address(uint64_t(int64_t(uint64_t(address)) + int64_t(int(n)) * 4))
#define IS(address) (uint64_t(address) != 0)
#define STATE_AT(state, i) state.at[i]
#define UNROLL [[unroll]]
#define ROLLED [[dont_unroll]]
#endif
