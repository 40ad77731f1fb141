// The rig of src/selftest for tests, on devices of its own.
#pragma once
#include <array>
#include <memory>

#include "selftest/rows.h"

namespace greta::test {

using namespace greta::selftest;

// The devices that each op is tested on: "checked cpu" verifies what the launches declare.
constexpr std::array<const char*, 2> kRigDevices = {"cpu", "checked cpu"};

struct RigDevice {
  std::unique_ptr<Device> inner, device;  // device wraps inner when checked
  RigDevice(const char* name, uint32_t features_mask, uint32_t threads);
};

class OpRig : private RigDevice, public selftest::Rig {
 public:
  explicit OpRig(const char* name = "cpu", uint32_t features_mask = ~0u, uint32_t threads = 0)
      : RigDevice(name, features_mask, threads), selftest::Rig(*device, inner != nullptr) {}
};

}  // namespace greta::test
