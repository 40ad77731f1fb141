// Compiled pipelines on disk. A file is believed only if its header names this very driver and its
// checksum is right; anything else is written anew.
#pragma once
#include <string>

#include "backends/vulkan/physical.h"

namespace greta {

// DIR/greta-vulkan-<key>.cache, one for each device and driver.
std::string pipeline_cache_path(const char* folder, const VulkanPhysical& physical);

// What the driver once gave; nothing where there is no file. Code::File for one that cannot be believed.
Status read_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                           std::vector<uint8_t>* out);

// Replaces the file in one step. Makes its folder and those above.
Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data);

}  // namespace greta
