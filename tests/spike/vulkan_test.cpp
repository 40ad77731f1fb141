// The GLSL form of the test kernel on every Vulkan device of the machine (lavapipe where there is no GPU).
#include <catch2/catch_test_macros.hpp>

#include "spike/vulkan_device.h"

using namespace greta;

TEST_CASE("the GLSL kernel gives the bits of the C++ kernel on every Vulkan device", "[spike]") {
  const KernelRow* row = find_test_kernel("scaled_add_spike", "vulkan", "");
  if (!row) SKIP("this build has no Vulkan kernels");
  VulkanInstance instance;
  if (!instance.open().ok()) SKIP(error_text());
  uint32_t usable = 0;
  for (VkPhysicalDevice physical : instance.devices()) {
    VulkanSpikeDevice device(instance, physical);
    const Status opened = device.open();
    if (opened.code == Code::Unsupported) {
      UNSCOPED_INFO(error_text());
      continue;
    }
    CAPTURE(device.name(), error_text());
    REQUIRE(opened.ok());
    check_scaled_add(device, *row);
    ++usable;
  }
  if (!usable) SKIP(instance.devices().size() << " Vulkan devices, none usable: " << error_text());
}
