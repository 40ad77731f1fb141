// The Vulkan loader, which is opened at run time, and an instance of it. Nothing links against Vulkan.
#pragma once
#include <vector>

#include "backends/vulkan/extensions.h"
#include "runtime/sharing.h"

namespace greta {

template <class Struct>
Struct tagged(VkStructureType type, void* next = nullptr) {
  Struct made = {};
  made.sType = type;
  made.pNext = next;
  return made;
}

// The name of a result, such as "VK_ERROR_DEVICE_LOST", or its number, such as "VkResult -123".
struct ResultText {
  char text[48];
};
ResultText describe(VkResult result);

// Makes a status of a failed call: Memory if memory ran out, else Device.
Status vulkan_failure(VkResult result, const char* what);

// Advice for the case that drivers are installed and find no device.
constexpr char kNoDeviceAdvice[] =
    "is the GPU's kernel module loaded, and may this user open /dev/dri/renderD*?";

class VulkanInstance {
 public:
  VulkanInstance() = default;
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance&) = delete;
  VulkanInstance& operator=(const VulkanInstance&) = delete;

  // Fails with Unsupported and the reason if there is no loader or no driver.
  Status open(const char* library);
  // Takes one of the host's, which it stays.
  Status adopt(const HostHandles& handles);

  // Prefers what the loader exports. Asked for a name, it may give the function of that name that the program
  // exports, since its own references go through the dynamic linker.
  PFN_vkVoidFunction find(const char* name) const {
    const auto exported = adopted_ ? nullptr : reinterpret_cast<PFN_vkVoidFunction>(library_->find(name));
    return exported ? exported : vkGetInstanceProcAddr(instance_, name);
  }
  const std::vector<VkPhysicalDevice>& devices() const { return devices_; }

  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define GLOBAL(name) PFN_##name name = nullptr;
#define INSTANCE(name) PFN_##name name = nullptr;
#include "backends/vulkan/symbols.def"

 private:
  Process process_;
  Unforked<DynamicLibrary> library_;  // threads of the driver may run in it
  VkInstance instance_ = VK_NULL_HANDLE;
  bool adopted_ = false;
  std::vector<VkPhysicalDevice> devices_;
};

// The functions of one device, which do not pass through the loader.
struct VulkanFunctions {
#define DEVICE(name) PFN_##name name = nullptr;
#include "backends/vulkan/symbols.def"
  Status load(const VulkanInstance& instance, VkDevice device);
};

}  // namespace greta
