// Compiled pipelines on disk. A file of another driver or with a wrong checksum is not used, but replaced.
#pragma once
#include <string>

#include "backends/vulkan/physical.h"

namespace greta {

// FOLDER/greta-vulkan-<key>.cache. The key depends on the device and the driver.
std::string pipeline_cache_path(const char* folder, const VulkanPhysical& physical);

// Reads what the driver once gave, or nothing if there is no file. Fails with Code::File if it is damaged.
Status read_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                           std::vector<uint8_t>* out);

// Replaces the file atomically. Makes its folder and those above.
Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data);

}  // namespace greta
