#include "backends/vulkan/loader.h"

namespace greta {

ResultText describe(VkResult result) {
  ResultText out;
  const char* name = nullptr;
  switch (result) {
#define NAME(value) \
  case value:       \
    name = #value;  \
    break;
    NAME(VK_TIMEOUT)
    NAME(VK_NOT_READY)
    NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    NAME(VK_ERROR_INITIALIZATION_FAILED)
    NAME(VK_ERROR_DEVICE_LOST)
    NAME(VK_ERROR_MEMORY_MAP_FAILED)
    NAME(VK_ERROR_LAYER_NOT_PRESENT)
    NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    NAME(VK_ERROR_TOO_MANY_OBJECTS)
    NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    NAME(VK_ERROR_UNKNOWN)
#undef NAME
    default:
      break;
  }
  if (name)
    format_text(out.text, sizeof out.text, "%s", name);
  else
    format_text(out.text, sizeof out.text, "VkResult %d", int(result));
  return out;
}

Status vulkan_failure(VkResult result, const char* what) {
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return fail(memory ? Code::Memory : Code::Device, "%s: %s", what, describe(result).text);
}

Status VulkanInstance::open(const char* library) {
  GRETA_TRY(
      within(library_->open(library), "no Vulkan loader (install the package libvulkan1 or vulkan-loader)"));
  vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(library_->find("vkGetInstanceProcAddr"));
  if (!vkGetInstanceProcAddr) return fail(Code::Unsupported, "%s has no vkGetInstanceProcAddr", library);
#define GLOBAL(name)                                \
  name = reinterpret_cast<PFN_##name>(find(#name)); \
  if (!name) return fail(Code::Unsupported, "the Vulkan loader has no %s; it is older than 1.1", #name);
#include "backends/vulkan/symbols.def"
  uint32_t version = 0;
  vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_3)
    return fail(Code::Unsupported, "the Vulkan loader is of version %u.%u, 1.3 is needed",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));

  auto application = tagged<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = application.pEngineName = "greta";
  application.apiVersion = VK_API_VERSION_1_3;
  auto info = tagged<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  VkInstance made = VK_NULL_HANDLE;
  VkResult result = vkCreateInstance(&info, nullptr, &made);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    return fail(Code::Unsupported,
                "no Vulkan driver found that works (install mesa-vulkan-drivers or the GPU vendor's): %s",
                describe(result).text);
  if (result != VK_SUCCESS) return fail(Code::Unsupported, "vkCreateInstance: %s", describe(result).text);
  instance_ = made;
#define INSTANCE(name)                              \
  name = reinterpret_cast<PFN_##name>(find(#name)); \
  if (!name) return fail(Code::Unsupported, "the Vulkan loader has no %s", #name);
#include "backends/vulkan/symbols.def"
  uint32_t count = 0;
  do {
    result = vkEnumeratePhysicalDevices(instance_, &count, nullptr);
    devices_.resize(count);
    if (result == VK_SUCCESS && count)
      result = vkEnumeratePhysicalDevices(instance_, &count, devices_.data());
  } while (result == VK_INCOMPLETE);
  devices_.resize(count);
  if (result != VK_SUCCESS)
    return fail(Code::Unsupported, "the Vulkan drivers of this machine find no device (%s): %s",
                describe(result).text, kNoDeviceAdvice);
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (!instance_ || adopted_ || !vkDestroyInstance || process_.elsewhere()) return;
  vkDestroyInstance(instance_, nullptr);
}

Status VulkanFunctions::load(const VulkanInstance& instance, VkDevice device) {
#define DEVICE(name)                                                                \
  name = reinterpret_cast<PFN_##name>(instance.vkGetDeviceProcAddr(device, #name)); \
  if (!name) return fail(Code::Unsupported, "the driver has no %s", #name);
#include "backends/vulkan/symbols.def"
  return {};
}

}  // namespace greta
