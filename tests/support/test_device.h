// The device that tests of ops and models run on: "cpu", or what GRETA_TEST_DEVICE names.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace greta::test {

inline const char* test_device() {
  const char* name = std::getenv("GRETA_TEST_DEVICE");
  return name && *name ? name : "cpu";
}

constexpr uint32_t kVulkanChains = 8;  // kVulkanChain: Vulkan's feature bit, to be masked out

inline bool on_cpu() { return !std::strcmp(test_device(), "cpu"); }

}  // namespace greta::test
