// The Vulkan loader, opened at run time, and an instance of it. Nothing links against Vulkan.
#pragma once
#include <vector>

#include "backends/vulkan/extensions.h"
#include "runtime/device.h"

namespace greta {

template <class Struct>
Struct tagged(VkStructureType type, void* next = nullptr) {
  Struct made = {};
  made.sType = type;
  made.pNext = next;
  return made;
}

// "VK_ERROR_DEVICE_LOST"; "VkResult -123" for those without a name here.
struct ResultText {
  char text[48];
};
ResultText describe(VkResult result);

// A failed call as a status: out of memory is Memory, all else Device.
Status vulkan_failure(VkResult result, const char* what);

// What to look at where drivers are installed and find nothing.
constexpr char kNoDeviceAdvice[] =
    "is the GPU's kernel module loaded, and may this user open /dev/dri/renderD*?";

class VulkanInstance {
 public:
  VulkanInstance() = default;
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  // Unsupported, with the reason, where there is no loader or no driver.
  Status open(const char* library);

  PFN_vkVoidFunction find(const char* name) const { return vkGetInstanceProcAddr(instance_, name); }
  const std::vector<VkPhysicalDevice>& devices() const { return devices_; }

  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define GLOBAL(name) PFN_##name name = nullptr;
#define INSTANCE(name) PFN_##name name = nullptr;
#define DEVICE(name)
#include "backends/vulkan/symbols.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE

 private:
  Process process_;
  Unforked<DynamicLibrary> library_;  // whose threads may be in it
  VkInstance instance_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> devices_;
};

// Functions of one device, without the loader's detour.
struct VulkanFunctions {
#define GLOBAL(name)
#define INSTANCE(name)
#define DEVICE(name) PFN_##name name = nullptr;
#include "backends/vulkan/symbols.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
  Status load(const VulkanInstance& instance, VkDevice device);
};

}  // namespace greta
