// The backends of this build, by name.
#pragma once
#include "runtime/device.h"

namespace greta {

std::span<const Backend* const> backends();

constexpr uint32_t kDeviceIdBytes = 16;

// "vulkan1", "cpu": the name that open_device takes.
void write_id(const Backend& backend, uint32_t index, char (&out)[kDeviceIdBytes]);

struct NamedDevice {
  Device* device = nullptr;
  char id[kDeviceIdBytes] = "";
};

// Opens "cpu", "vulkan0", "hip1"; "vulkan": the best usable one of these; or "auto": the best usable one of
// all. A device that was asked for by its number and cannot be opened is an error with the reason, never
// another device.
Status open_device(const char* name, const DeviceOptions& options, NamedDevice* out);
Status open_device(const char* name, const DeviceOptions& options, Device** out);

}  // namespace greta
