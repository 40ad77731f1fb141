// The rig of src/selftest for tests, on devices of its own.
#pragma once
#include <array>
#include <memory>
#include <string>

#include "selftest/checks/rows.h"
#include "support/test_device.h"

namespace greta::test {

using namespace greta::selftest;

// The devices that each op is tested on: the checked one verifies what the launches declare.
inline std::array<std::string, 2> rig_devices() {
  return {test_device(), std::string("checked ") + test_device()};
}

struct RigDevice {
  std::unique_ptr<Device> inner, device;  // device wraps inner when checked
  RigDevice(const std::string& name, uint32_t features_mask, uint32_t threads);
};

class OpRig : private RigDevice, public selftest::Rig {
 public:
  explicit OpRig(const std::string& name = test_device(), uint32_t features_mask = ~0u, uint32_t threads = 0)
      : RigDevice(name, features_mask, threads), selftest::Rig(*device, inner != nullptr) {}
};

}  // namespace greta::test
