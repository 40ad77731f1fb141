// The backends of this build, by name.
#pragma once
#include "runtime/device.h"

namespace greta {

std::span<const Backend* const> backends();

const Backend* processor();  // the backend that is the processor; null if this build has none

bool left_out(const Backend& backend, const DeviceOptions& options);  // DeviceOptions::without names it

constexpr uint32_t kDeviceIdBytes = 16;

// Writes the name that open_device takes, such as "vulkan1" or "cpu".
void write_id(const Backend& backend, uint32_t index, char (&out)[kDeviceIdBytes]);

struct NamedDevice {
  Device* device = nullptr;
  char id[kDeviceIdBytes] = "";
};

// Opens the best usable device of these backends: "auto". The log says why better ones were not taken.
Status open_best(std::span<const Backend* const> from, const DeviceOptions& options, NamedDevice* out);

// Opens a device by its name ("cpu", "vulkan0"), the best usable device of a backend ("vulkan"), or the best
// of all, "auto". If the name has a number and that device cannot be opened, the call fails with the reason;
// it never opens another device instead.
Status open_device(const char* name, const DeviceOptions& options, NamedDevice* out);
Status open_device(const char* name, const DeviceOptions& options, Device** out);

}  // namespace greta
