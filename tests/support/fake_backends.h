// Backends whose devices a test makes up.
#pragma once
#include <string>
#include <vector>

#include "runtime/runtime.h"

struct FakeDevice {
  const char* name;
  const char* arch = "";
  bool unified = false, on_processor = false;
  const char* reason = "";  // why it cannot be used
  const char* pci = "";
  const char* library = "";
  bool vendor_driver = false;
};

// A backend whose devices a test sets. `Kind` keeps those of several apart.
template <int Kind>
struct Fake {
  inline static std::vector<FakeDevice> devices;
  inline static FakeDevice none;  // what is known where there is no device
  inline static int asked = 0;

  static uint32_t count(const greta::DeviceOptions&) { return ++asked, uint32_t(devices.size()); }
  static greta::Status describe(uint32_t index, const greta::DeviceOptions&, greta::DeviceInfo* out) {
    ++asked;
    const FakeDevice& device = index < devices.size() ? devices[index] : none;
    greta::format_text(out->name, sizeof out->name, "%s", device.name ? device.name : "");
    greta::format_text(out->arch, sizeof out->arch, "%s", device.arch);
    greta::format_text(out->pci, sizeof out->pci, "%s", device.pci);
    greta::format_text(out->library, sizeof out->library, "%s", device.library);
    out->vendor_driver = device.vendor_driver;
    out->unified_memory = device.unified;
    out->cpu_type = device.on_processor;
    return *device.reason ? greta::fail(greta::Code::Unsupported, "%s", device.reason) : greta::Status{};
  }
  static greta::Status open(uint32_t, const greta::DeviceOptions&, greta::Device** out) {
    return greta::open_null_device({}, out);
  }
  static bool where_kfd_is(const greta::DeviceOptions& options) {
    return greta::read_system_gpus(options.system).has_hip();
  }
};
using FakeHip = Fake<0>;
using FakeVulkan = Fake<1>;
using FakeCpu = Fake<2>;

inline constexpr greta::Backend kFakeHip = {
    "hip", false, FakeHip::count, FakeHip::describe, FakeHip::open, FakeHip::where_kfd_is};
inline constexpr greta::Backend kFakeVulkan = {"vulkan", false, FakeVulkan::count, FakeVulkan::describe,
                                               FakeVulkan::open};
inline constexpr greta::Backend kFakeCpu = {"cpu", true, FakeCpu::count, FakeCpu::describe, FakeCpu::open};
