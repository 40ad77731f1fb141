// What Linux tells of AMD GPUs beside the driver's library.
#pragma once
#include "backends/hip/api.h"
#include "runtime/device.h"

namespace greta {

// Fails with the reason if this machine has no kernel driver for AMD GPUs. ROCm's libraries are then left
// alone: their LLVM clashes with others in a process. A library that the options name is opened always.
Status hip_driver_is_there(const DeviceOptions& options);

// Makes "0000:03:00.0".
void hip_pci(const HipProperties& properties, char (&out)[16]);

// The memory of a device in bytes. That of an APU is what the firmware set aside of the host's memory, or
// what the kernel lends it of the rest (GTT); new kernels take the larger of the two.
uint64_t hip_memory_bytes(const HipProperties& properties, const SystemGpu* gpu);

// What of it is free, if the driver says `driver_free`.
uint64_t hip_memory_free(const HipProperties& properties, const SystemGpu* gpu, uint64_t driver_free);

}  // namespace greta
