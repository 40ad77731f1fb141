#include "tune/dies.h"

#include <cstring>

namespace greta {

// Where the system does not tell the dies of a device, or of the part of a GPU that a device is, its units
// do: 38 work on each die of an MI300, and 32 on each die of an MI350.
uint32_t die_count(const DeviceInfo& device) {
  if (device.die_count) return device.die_count;
  const uint32_t units = !strcmp(device.arch, "gfx942") ? 38 : !strcmp(device.arch, "gfx950") ? 32 : 0;
  if (strcmp(device.backend, "hip") || !units || device.unit_count % units) return 1;
  return device.unit_count / units;
}

void deal_over_dies(const KernelRow& row, const DeviceInfo* device, Launch* launch) {
  if (!device || !row.tile_tokens || lead_op({row.ops, row.op_count}) != Op::Matmul) return;
  const uint32_t dies = die_count(*device);
  if (dies == 1 || launch->groups[1] != 1) return;
  launch->groups[1] = uint32_t(divide_up(launch->groups[0], dies));
  launch->groups[0] = dies;
}

}  // namespace greta
