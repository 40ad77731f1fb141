#pragma once
#include <dlfcn.h>

#include "support/devices.h"

// VkResult
constexpr int kOutOfHostMemory = -1, kOutOfDeviceMemory = -2, kInitializationFailed = -3, kDeviceLost = -4;

// Device vulkan0 behind tests/mock_vulkan, a libvulkan that fails or hides what it is told to. Skips the test where there
// is no such device.
class Faults {
 public:
  Faults() {
    if (!is_there("vulkan")) SKIP("no Vulkan device: " << greta::error_text());
    library_ = dlopen(MOCK_VULKAN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_);
    set_ = reinterpret_cast<void (*)(const char*, int, int)>(dlsym(library_, "greta_faults_set"));
    hide_ = reinterpret_cast<void (*)(const char*)>(dlsym(library_, "greta_faults_hide"));
    REQUIRE((set_ && hide_));
    none();
  }
  ~Faults() { none(), dlclose(library_); }
  void fail(const char* function, int passing, int result) { set_(function, passing, result); }
  void hide(const char* names) { hide_(names); }
  void none() { set_("", 0, 0), hide_(""); }

  greta::Status open(greta::Device** out) {
    greta::DeviceOptions options;
    options.driver_library = MOCK_VULKAN_LIBRARY;
    return greta::open_device("vulkan0", options, out);
  }
  OpenDevice opened() {
    greta::Device* device = nullptr;
    const greta::Status status = open(&device);
    INFO(greta::error_text());
    REQUIRE(status.ok());
    return {nullptr, std::unique_ptr<greta::Device>(device)};
  }

 private:
  void* library_ = nullptr;
  void (*set_)(const char*, int, int) = nullptr;
  void (*hide_)(const char*) = nullptr;
};
