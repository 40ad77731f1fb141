// What kernels read of StepState (kernels/abi/step_state.h): how many rows live, and which page has a
// position.
#ifndef GRETA_VULKAN_STEP_H
#define GRETA_VULKAN_STEP_H
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/ops.h"

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer StepState_address {
  StepState state;
  uint page_table[];  // [sequence_capacity][page_capacity], then SamplePenalties [sequence_capacity]
};

StepState_address step_of(byte_address step) { return StepState_address(step); }

// How many rows an op runs over.
uint live_rows(StepState_address step, uint rows_of) {
  const uint rows = rows_of == kRowsTokens ? step.state.token_count : step.state.output_count;
  return min(rows, kMaxStepTokens);
}

// The row of x from which row i of y is made.
uint source_row(StepState_address step, uint rows_of, uint i) {
  return rows_of == kRowsGather ? step.state.output_row[i] : i;
}

// The page of the pool that has `position` of `sequence`.
uint page_of(StepState_address step, uint sequence, uint position) {
  return step.page_table[sequence * step.state.page_capacity + position / kPageTokens];
}
#endif
