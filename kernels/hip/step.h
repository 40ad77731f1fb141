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

// The page of the pool that has `position` of `sequence`.
DEVICE uint page_of(Step step, uint sequence, uint position) {
  const auto page_table = (const GLOBAL uint*)(step + 1);  // [sequence_capacity][page_capacity]
  return page_table[sequence * step->page_capacity + position / kPageTokens];
}
