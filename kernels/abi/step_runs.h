// StepRuns: which rows of a step belong to one sequence, and where the states of that sequence lie. The rows
// of a sequence stand together in a step, in order of their positions: they are a run. Only ops that keep a
// state ask for runs, in a buffer beside the StepState.
#ifndef GRETA_ABI_STEP_RUNS_H
#define GRETA_ABI_STEP_RUNS_H
#include "kernels/abi/step_state.h"

struct StepRun {
  uint first, count;  // its rows of the step
  uint state;         // which of a layer's states is its own
};

// A state is what a sequence has left of its earlier rows. It is read before the first row of a run and
// written behind the last one. Before position 0 all of its values are zeros, whatever the memory holds.
struct StepRuns {
  uint count;
  StepRun run[kMaxStepSequences];
  uint run_of[kMaxStepTokens];  // of a row
};

#endif
