// How the kernels with states find a run's rows and its state, and the words of kernels/gpu/scan.h.
#pragma once
#include "kernels/abi/scan.h"
#include "kernels/hip/math.h"
#include "kernels/hip/step.h"

DEVICE const GLOBAL StepRuns* runs_of(const GLOBAL byte* runs) { return (const GLOBAL StepRuns*)runs; }

// Whether the run begins its sequence, so that its state is zeros whatever the memory holds.
DEVICE bool begins_sequence(Step step, const StepRun& run) { return step->row[run.first].position == 0; }

DEVICE float_address state_of(GLOBAL float* states, const StepRun& run, uint stride) {
  return float_address(states + uint64_t(run.state) * stride);
}

DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
namespace {
WORD vec4 fma(vec4 a, vec4 b, vec4 c) { return __builtin_elementwise_fma(a, b, c); }
}  // namespace

// `value`, which the compiler takes for another one in each round of a loop: what follows from it is made
// anew and stays in no register meanwhile.
DEVICE uint made_anew(uint value) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+v"(value));
#endif
  return value;
}

#define AT(address, i) address[i]
#define MOVED(address, n) float_address(float_address(address).at + int(n))
#define IS(address) (address != nullptr)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("nounroll")

// A float of a run's state, by a distance in bytes that fits in 32 bits: it takes one register where an
// address takes two.
#define STATE_AT(state, i) (*(GLOBAL float*)((GLOBAL byte*)state.at + uint(i) * 4))
