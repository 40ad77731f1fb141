// What the kernels read of StepState: how many rows live, and where a position's page lies.
#pragma once
#include "kernels/abi/ops.h"

namespace {

inline const StepState* step_of(uint64_t address) { return (const StepState*)address; }

inline uint32_t live_rows(const StepState* step, uint32_t rows_of) {
  const uint32_t rows = rows_of == kRowsTokens ? step->token_count : step->output_count;
  return rows < kMaxStepTokens ? rows : kMaxStepTokens;
}

// The row of x that makes row i of y.
inline uint32_t source_row(const StepState* step, uint32_t rows_of, uint32_t i) {
  return rows_of == kRowsGather ? step->output_row[i] : i;
}

// Page of the pool that holds `position` of `sequence`.
inline uint32_t page_of(const StepState* step, uint32_t sequence, uint32_t position) {
  const uint32_t* table = (const uint32_t*)(step + 1);
  return table[uint64_t(sequence) * step->page_capacity + position / kPageTokens];
}

inline const SamplePenalties& penalties_of(const StepState* step, uint32_t sequence) {
  const uint32_t* table = (const uint32_t*)(step + 1);
  const uint32_t* behind = table + uint64_t(step->sequence_capacity) * step->page_capacity;
  return ((const SamplePenalties*)behind)[sequence];
}

}  // namespace
