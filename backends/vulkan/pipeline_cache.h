// Compiled pipelines on disk. A file is used only if its header names exactly this driver and its checksum is
// right; any other file is replaced.
#pragma once
#include <string>

#include "backends/vulkan/physical.h"

namespace greta {

// FOLDER/greta-vulkan-<key>.cache. The key depends on the device and the driver.
std::string pipeline_cache_path(const char* folder, const VulkanPhysical& physical);

// Reads what the driver once gave, or nothing if there is no file. Fails with Code::File if the file is
// damaged or another driver's.
Status read_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                           std::vector<uint8_t>* out);

// Replaces the file atomically. Makes its folder and those above.
Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data);

}  // namespace greta
