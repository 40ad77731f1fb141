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

// The library that drives it in place of the system's, or null: GRETA_TEST_LIBRARY, as of tests/mock_hip.
inline const char* test_library() {
  const char* path = std::getenv("GRETA_TEST_LIBRARY");
  return path && *path ? path : nullptr;
}

// Vulkan's feature bits kVulkanCoopMatrix and kVulkanChain, which tests mask out.
constexpr uint32_t kVulkanMatrices = 2, kVulkanChains = 8;

// Where engines of tests lie in part on the CPU as a second device: GRETA_TEST_SPLIT, which is "first" (the
// first layer alone), "middle" (an odd cut), "turns" (layers in turn) or "output"; "" for one device.
inline const char* test_split() {
  const char* split = std::getenv("GRETA_TEST_SPLIT");
  return split ? split : "";
}

inline bool on_cpu() { return !std::strcmp(test_device(), "cpu"); }

}  // namespace greta::test
