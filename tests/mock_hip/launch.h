// A launch as the mock runtime checks and runs it.
#pragma once
#include <string>
#include <vector>

#include "tests/mock_hip/code_object.h"
#include "tests/mock_hip/kernel_registry.h"
#include "tests/mock_hip/lane_emulator.h"

namespace mock_hip {

struct Function {
  const KernelMetadata* metadata;
  const HostKernel* host;
};

struct KernelLaunch {
  Function function;
  LaunchShape shape;
  std::vector<uint64_t> block;
  unsigned resident = 0;  // of a cooperative launch: how many groups stay side by side
};

// Checks a launch against the metadata of its code object, and copies its argument block. Returns what is
// wrong.
std::string make_launch(const Function& function, const unsigned (&groups)[3], unsigned threads,
                        unsigned shared_bytes, void** parameters, void** extra, KernelLaunch* out);

// Runs it on the lane emulator. Returns what the kernel did wrong.
std::string run_launch(const KernelLaunch& launch);

}  // namespace mock_hip
