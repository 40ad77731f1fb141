// Where a HIP runtime may lie on a machine.
#pragma once
#include <string>
#include <vector>

#include "runtime/device.h"

namespace greta {

constexpr int kOldestHip = 6;  // the major number that hipGetDevicePropertiesR0600 came with

// What to open, in the order in which it is tried: the folders of `options`, the names that the dynamic
// loader knows, the folders of ROCm's packages, and a Python virtual environment. Of several versions in one
// place the highest comes first, and versions before kOldestHip last, so that they are said to be too old.
std::vector<std::string> hip_runtimes(const DeviceOptions& options);

}  // namespace greta
