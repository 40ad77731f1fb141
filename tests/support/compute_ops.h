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

constexpr double kLimit = 1e-11;  // NMSE of operations whose chain of roundings is short

// x, whose rows are `stride` apart, with what is untouched in the gaps.
inline std::vector<float> spread(const std::vector<float>& dense, uint64_t width, uint64_t stride) {
  std::vector<float> all(dense.size() / width * stride, kUntouched);
  for (size_t i = 0; i < dense.size(); ++i) all[i / width * stride + i % width] = dense[i];
  return all;
}

// The rows of y. Fails unless the gaps are untouched.
inline std::vector<float> gathered(const std::vector<float>& all, uint64_t width, uint64_t stride) {
  std::vector<float> dense;
  size_t touched = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (i % stride < width)
      dense.push_back(all[i]);
    else
      touched += all[i] != kUntouched;
  CHECK(touched == 0);
  return dense;
}

inline void check_close(const std::vector<float>& y, const Values& expected, double limit = kLimit) {
  const double error = nmse(y, expected);
  INFO("error " << error);
  CHECK(error <= limit);
}

}  // namespace greta::test
