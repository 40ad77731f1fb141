// What Linux tells of the GPU behind a HIP device: its node of the compute driver (KFD), and its memory in
// sysfs. HIP does not know what graphics uses, and counts RDNA's units in pairs.
#pragma once
#include <string>
#include <string_view>

#include "backends/hip/api.h"
#include "platform/platform.h"

namespace greta {

// All numbers are 0 if they are not known.
struct HipCard {
  std::string folder;         // "/sys/class/drm/renderD128/device/"; "" if it is not known
  uint32_t units = 0;         // compute units
  uint32_t dies = 0;          // accelerator dies (XCCs)
  uint64_t memory_bytes = 0;  // what the compute driver can give of the GPU's memory; on an APU mostly lent
  uint64_t own_bytes = 0;     // the GPU's own memory; on an APU what the firmware set aside
  bool has_cores = false;     // its node is also the processor's: an APU, which HIP before 6.2 does not tell
};

HipCard read_hip_card(const SystemView& system, const char* pci);

// The compute units of a device. HIP counts those of RDNA in pairs (WGPs), unless the process was told not
// to.
uint32_t hip_units(const HipProperties& properties, const HipCard& card);

// The dies of a device, or of the part of a GPU that it is; 1 where they are not known. Where the system does
// not tell them, the units do, for an exact target.
uint32_t hip_dies(std::string_view arch, uint32_t units, const HipCard& card);

// The memory of a device in bytes. That of an APU is what the compute driver lends it: sysfs names more,
// which HIP cannot allocate.
uint64_t hip_memory_bytes(const HipProperties& properties, const HipCard& card);

// What of it is free, if the driver says that so much of so much is. Only files of this one card are read.
uint64_t hip_memory_free(const HipProperties& properties, const HipCard& card, const char* root,
                         uint64_t driver_free, uint64_t driver_total);

}  // namespace greta
