// How the kernels with states find a run's rows, and its state.
#pragma once
#include "kernels/abi/scan.h"
#include "kernels/cpu/step.h"

namespace {

inline const StepRuns* runs_of(uint64_t address) { return (const StepRuns*)address; }

// Whether the run begins its sequence, so that its state is zeros whatever the memory holds.
inline bool begins_sequence(const StepState* step, const StepRun& run) {
  return step->row[run.first].position == 0;
}

}  // namespace
