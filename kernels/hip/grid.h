// How many groups a launch has.
#pragma once
#include "kernels/hip/device.h"

namespace {
DEVICE uint group_count_x() { return __builtin_amdgcn_grid_size_x() / GROUP; }
DEVICE uint group_count_y() { return __builtin_amdgcn_grid_size_y(); }  // groups have one thread along y
}  // namespace
