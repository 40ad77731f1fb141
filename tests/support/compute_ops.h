// Runs operations of greta_compute.h with scratch of just the size that they ask for.
#pragma once
#include "selftest/rig.h"
#include "support/compute_rig.h"

namespace greta::test {

using reference::Random;
using reference::Values;
using selftest::gaussians;
using selftest::nmse;
using selftest::to_values;

// GRETA_RUN(rig, rms_norm, call): check, scratch, the call, and a wait.
#define GRETA_RUN(rig, name, call)                                                                  \
  do {                                                                                              \
    uint64_t scratch_bytes_ = 0;                                                                    \
    (rig).ok(greta_##name##_check((rig).compute, &(call)));                                         \
    (rig).ok(greta_##name##_scratch((rig).compute, &(call), &scratch_bytes_));                      \
    (rig).ok(greta_##name((rig).compute, (rig).stream, &(call), (rig).scratch(scratch_bytes_), 0)); \
    (rig).wait();                                                                                   \
  } while (0)

// The devices that each operation is tested on: with the best kernels, with plain ones, and checked.
inline std::vector<std::unique_ptr<ComputeRig>> op_rigs() {
  std::vector<std::unique_ptr<ComputeRig>> rigs;
  rigs.push_back(std::make_unique<ComputeRig>());
  rigs.push_back(std::make_unique<ComputeRig>(0, true));
  rigs.push_back(std::make_unique<ComputeRig>(open_checked(open_named(test_device(), 0))));
  return rigs;
}

}  // namespace greta::test
