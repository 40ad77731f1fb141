// The backends of this build, by name.
#pragma once
#include "runtime/device.h"

namespace greta {

std::span<const Backend* const> backends();

// Opens "cpu", "vulkan0", "hip1", or "auto" (the first usable one). A device that was asked for by
// name and cannot be opened is an error with the reason, never another device.
Status open_device(const char* name, const DeviceOptions& options, Device** out);

}  // namespace greta
