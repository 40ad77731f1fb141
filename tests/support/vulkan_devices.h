#pragma once
#include <dlfcn.h>

#include "places.h"
#include "support/devices.h"

// Devices of tests/mock_vulkan/vulkan_devices.cpp, a libvulkan that lists the devices that it is told to and
// watches the pipelines that are made. Skips the test if there is no real device behind it.
class MockDevices {
 public:
  struct Pipelines {
    int made, without_lanes, at_once;
  };

  MockDevices() {
    if (!is_there("vulkan")) SKIP("no Vulkan device: " << greta::error_text());
    library_ = dlopen(MOCK_VULKAN_DEVICES, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_);
    list_ = reinterpret_cast<void (*)(const char*)>(dlsym(library_, "greta_devices_list"));
    await_ = reinterpret_cast<void (*)(int)>(dlsym(library_, "greta_devices_await"));
    seen_ = reinterpret_cast<void (*)(int*, int*, int*)>(dlsym(library_, "greta_devices_seen"));
    refuse_ = reinterpret_cast<void (*)(const void*, size_t)>(dlsym(library_, "greta_devices_refuse"));
    REQUIRE((list_ && await_ && seen_ && refuse_));
    none();
  }
  ~MockDevices() { none(), dlclose(library_); }
  MockDevices(const MockDevices&) = delete;
  MockDevices& operator=(const MockDevices&) = delete;

  void none() { list_(nullptr), await_(0), refuse_(nullptr, 0); }
  void list(const char* words) { list_(words); }  // "discrete integrated-old"; "": none
  void await(int pipelines_at_once) { await_(pipelines_at_once); }
  void refuse(const greta::CodeBytes& code) {
    std::vector<uint8_t> spirv;
    REQUIRE(greta::unpack(code, &spirv).ok());
    refuse_(spirv.data(), spirv.size());
  }
  Pipelines seen() {
    Pipelines seen = {};
    seen_(&seen.made, &seen.without_lanes, &seen.at_once);
    return seen;
  }

  greta::Status open(const char* name, greta::NamedDevice* out, greta::Log log = {}) {
    greta::DeviceOptions options = with_threads(1);
    options.driver_library = MOCK_VULKAN_DEVICES;
    options.log = log;
    return greta::open_device(name, options, out);
  }

 private:
  void* library_ = nullptr;
  void (*list_)(const char*) = nullptr;
  void (*await_)(int) = nullptr;
  void (*seen_)(int*, int*, int*) = nullptr;
  void (*refuse_)(const void*, size_t) = nullptr;
};
