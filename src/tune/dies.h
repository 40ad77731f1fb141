// GPUs of several dies. An MI300 gives the groups of a launch to its dies in turn, and each die has an L2
// cache of its own. Products in tiles are dealt out so that a die's groups make neighbouring tiles, which
// read the same weights (kernels/hip/gemm/matmul_tiles.h).
#pragma once
#include "compute/compute.h"

namespace greta {

// The dies that share the groups of a launch; 1 where they are not known.
uint32_t die_count(const DeviceInfo& device);

// Gives a launch of numbered tiles, which OpInfo::groups puts along x, as many groups along x as there are
// dies, and along y the tiles of a die. Launches of other rows stay as they are.
void deal_over_dies(const KernelRow& row, const DeviceInfo* device, Launch* launch);

}  // namespace greta
