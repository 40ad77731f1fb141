// What Linux tells of AMD GPUs beside the driver's library.
#pragma once
#include <string_view>

#include "backends/hip/api.h"
#include "runtime/device.h"

namespace greta {

// Whether this machine has a kernel driver for AMD GPUs. Where it has none, `auto` leaves ROCm's libraries
// alone: their LLVM clashes with others in a process.
bool hip_may_be_there(const DeviceOptions& options);

// Writes what the kernel tells of a GPU that the runtime does not show: an Instinct if there is one.
void hip_describe_hidden(const DeviceOptions& options, DeviceInfo* out);

// Fails with the reason if a device of the exact target `arch` runs none of the code objects for `targets`
// (words between spaces), or the runtime of this version does not know those of a family.
Status hip_check_code(const char* arch, int version, std::string_view targets);
extern const char* const kHipTargets;  // of this build

// Makes "0000:03:00.0".
void hip_pci(const HipProperties& properties, char (&out)[16]);

}  // namespace greta
