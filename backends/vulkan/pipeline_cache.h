// Compiled pipelines on disk. A file is believed only if its header names this very driver and its
// checksum is right; anything else counts as no file and is written anew.
#pragma once
#include <string>

#include "backends/vulkan/physical.h"

namespace greta {

// DIR/greta-vulkan-<key>.cache, one for each device and driver.
std::string pipeline_cache_path(const char* folder, const VulkanPhysical& physical);

// What the driver once gave, or empty.
std::vector<uint8_t> read_pipeline_cache(const std::string& path, const VulkanPhysical& physical);

// Replaces the file in one step. Makes the folder if its parent is there.
Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data);

}  // namespace greta
