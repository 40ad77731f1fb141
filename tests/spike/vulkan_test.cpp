// The GLSL form of the test kernel on every Vulkan device of the machine (lavapipe where there is no GPU).
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "runtime/runtime.h"
#include "spike/backend_spike_device.h"

using namespace greta;

TEST_CASE("the GLSL kernel gives the bits of the C++ kernel on every Vulkan device", "[spike]") {
  const KernelRow* row = find_test_kernel("scaled_add_spike", "vulkan", "");
  if (!row) SKIP("this build has no Vulkan kernels");
  uint32_t usable = 0;
  for (const Backend* backend : backends()) {
    if (strcmp(backend->name, "vulkan")) continue;
    for (uint32_t index = 0; index < backend->count({}); ++index) {
      DeviceInfo info;
      if (!backend->describe(index, {}, &info).ok()) continue;
      Device* opened = nullptr;
      const Status status = backend->open(index, {}, &opened);
      CAPTURE(info.name, error_text());
      REQUIRE(status.ok());
      const std::unique_ptr<Device> device(opened);
      BackendSpikeDevice spike(*device);
      check_scaled_add(spike, *row);
      ++usable;
    }
  }
  if (!usable) SKIP("no usable Vulkan device: " << error_text());
}
