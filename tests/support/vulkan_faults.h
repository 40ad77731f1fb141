#pragma once
#include <dlfcn.h>

#include "places.h"
#include "support/devices.h"

// VkResult
constexpr int kOutOfHostMemory = -1, kOutOfDeviceMemory = -2, kInitializationFailed = -3, kDeviceLost = -4;

// Device vulkan0 behind tests/mock_vulkan, a libvulkan that fails or hides what it is told to. Skips the test
// if there is no such device.
class Faults {
 public:
  Faults() {
    if (!is_there("vulkan")) SKIP("no Vulkan device: " << greta::error_text());
    library_ = dlopen(MOCK_VULKAN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_);
    set_ = reinterpret_cast<void (*)(const char*, int, int, int)>(dlsym(library_, "greta_faults_set"));
    hide_ = reinterpret_cast<void (*)(const char*)>(dlsym(library_, "greta_faults_hide"));
    barriers_ = reinterpret_cast<int (*)()>(dlsym(library_, "greta_faults_barriers"));
    submits_ = reinterpret_cast<void (*)(int*, int*)>(dlsym(library_, "greta_faults_submits"));
    hang_ = reinterpret_cast<void (*)(int)>(dlsym(library_, "greta_faults_hang"));
    second_ = reinterpret_cast<int (*)()>(dlsym(library_, "greta_faults_second"));
    REQUIRE((set_ && hide_ && barriers_ && submits_ && hang_ && second_));
    none();
  }
  ~Faults() { none(), dlclose(library_); }
  void fail(const char* function, int passing, int result) { set_(function, passing, result, 0); }
  void fail_once(const char* function, int passing, int result = 0) { set_(function, passing, result, 1); }
  void hide(const char* names) { hide_(names); }
  void hang() { hang_(1); }
  int second() { return second_(); }      // allocations of the second heap since the last call
  int barriers() { return barriers_(); }  // how many were recorded since the last call
  struct Submits {
    int calls = 0, buffers = 0;
    bool operator==(const Submits&) const = default;
  };
  Submits submits() {  // those since the last call
    Submits since;
    submits_(&since.calls, &since.buffers);
    return since;
  }
  void none() { set_("", 0, 0, 0), hide_(""), hang_(0); }

  greta::Status open(greta::Device** out, uint32_t features_mask = ~0u, const char* cache_folder = nullptr,
                     greta::DeviceOptions options = {}) {
    options.features_mask = features_mask;
    options.cache_folder = cache_folder;
    options.driver_library = MOCK_VULKAN_LIBRARY;
    return greta::open_device("vulkan0", options, out);
  }
  OpenDevice opened(uint32_t features_mask = ~0u, const char* cache_folder = nullptr) {
    greta::Device* device = nullptr;
    const greta::Status status = open(&device, features_mask, cache_folder);
    INFO(greta::error_text());
    REQUIRE(status.ok());
    return {nullptr, std::unique_ptr<greta::Device>(device)};
  }

 private:
  void* library_ = nullptr;
  void (*set_)(const char*, int, int, int) = nullptr;
  void (*hide_)(const char*) = nullptr;
  void (*hang_)(int) = nullptr;
  int (*barriers_)() = nullptr;
  int (*second_)() = nullptr;
  void (*submits_)(int*, int*) = nullptr;
};
