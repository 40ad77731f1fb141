// What kernels read of StepState (kernels/abi/step_state.h): how many rows live, and which page has a
// position.
#pragma once
#include "kernels/abi/ops.h"
#include "kernels/hip/device.h"

using Step = const GLOBAL StepState*;  // behind it the page table

DEVICE Step step_of(const GLOBAL byte* step) { return (Step)step; }

// How many rows an op runs over.
DEVICE uint live_rows(Step step, uint rows_of) {
  const uint rows = rows_of == kRowsTokens ? step->token_count : step->output_count;
  return rows < kMaxStepTokens ? rows : kMaxStepTokens;
}

// The row of x from which row i of y is made.
DEVICE uint source_row(Step step, uint rows_of, uint i) {
  return rows_of == kRowsGather ? step->output_row[i] : i;
}

// Where the page table has `position` of `sequence`. The table [sequence_capacity][page_capacity] lies behind
// the step.
template <class Step>
DEVICE uint page_entry(Step step, uint sequence, uint position) {
  return sequence * step->page_capacity + position / kPageTokens;
}

// The page of the pool that has `position` of `sequence`.
DEVICE uint page_of(Step step, uint sequence, uint position) {
  return ((const GLOBAL uint*)(step + 1))[page_entry(step, sequence, position)];
}

// The same as a scalar, where sequence and position are the same in all lanes. Nothing of the kernel's own
// launch may write the step.
DEVICE uint scalar_page_of(Step step, uint sequence, uint position) {
  const auto constant = (const ARGUMENT StepState*)uint64_t(step);
  return ((const ARGUMENT uint*)(constant + 1))[page_entry(constant, sequence, position)];
}
