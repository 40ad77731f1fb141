// A libvulkan in front of the real one that lists its first device several times, as devices of other kinds,
// and watches the pipelines that are made. Opened through DeviceOptions::driver_library, set through
// greta_devices_*.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "in_front.h"

namespace {

constexpr uint32_t kMostDevices = 4;

// Stands for a physical device: what is asked of it is asked of the real one.
struct Listed {
  VkPhysicalDevice real;
  VkPhysicalDeviceType type;
  bool old;
  char name[32];
};
Listed listed[kMostDevices];
uint32_t listed_count = 0;
bool lists_all = true;  // as the real one does

VkPhysicalDevice real(VkPhysicalDevice device) {
  for (const Listed& each : listed)
    if (device == reinterpret_cast<VkPhysicalDevice>(const_cast<Listed*>(&each))) return each.real;
  return device;
}

PFN_vkEnumeratePhysicalDevices real_vkEnumeratePhysicalDevices;
VKAPI_ATTR VkResult VKAPI_CALL list_devices(VkInstance instance, uint32_t* count, VkPhysicalDevice* out) {
  if (lists_all) return real_vkEnumeratePhysicalDevices(instance, count, out);
  VkPhysicalDevice first = VK_NULL_HANDLE;
  uint32_t one = 1;
  const VkResult result = real_vkEnumeratePhysicalDevices(instance, &one, &first);
  if (result < 0) return result;
  if (out)
    *count = std::min(*count, listed_count);
  else
    *count = listed_count;
  for (uint32_t i = 0; out && i < *count; ++i) {
    listed[i].real = first;
    out[i] = reinterpret_cast<VkPhysicalDevice>(&listed[i]);
  }
  return VK_SUCCESS;
}

PFN_vkGetPhysicalDeviceProperties2 real_vkGetPhysicalDeviceProperties2;
VKAPI_ATTR void VKAPI_CALL other_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_vkGetPhysicalDeviceProperties2(real(device), out);
  if (real(device) == device) return;
  const Listed& as = *reinterpret_cast<Listed*>(device);
  out->properties.deviceType = as.type;
  if (as.old) out->properties.apiVersion = VK_API_VERSION_1_2;
  snprintf(out->properties.deviceName, sizeof out->properties.deviceName, "%s", as.name);
  for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT) {
      auto* pci = reinterpret_cast<VkPhysicalDevicePCIBusInfoPropertiesEXT*>(next);
      pci->pciDomain = 0, pci->pciBus = 0xc0 + uint32_t(&as - listed), pci->pciDevice = 3,
      pci->pciFunction = 0;
    }
}

// A device that is listed in place of another one has a PCI address of its own.
PFN_vkEnumerateDeviceExtensionProperties real_vkEnumerateDeviceExtensionProperties;
VKAPI_ATTR VkResult VKAPI_CALL other_extensions(VkPhysicalDevice device, const char* layer, uint32_t* count,
                                                VkExtensionProperties* out) {
  const uint32_t room = *count;
  const VkResult result = real_vkEnumerateDeviceExtensionProperties(real(device), layer, count, out);
  if (real(device) == device || result != VK_SUCCESS) return result;
  if (!out) return ++*count, result;
  if (*count == room) return VK_INCOMPLETE;
  out[(*count)++] = {VK_EXT_PCI_BUS_INFO_EXTENSION_NAME, 1};
  return result;
}

// Functions of a physical device that answer as the real one.
#define PASSED(type, name, parameters, arguments) \
  PFN_##name real_##name;                         \
  VKAPI_ATTR type VKAPI_CALL passed_##name parameters { return real_##name arguments; }
PASSED(void, vkGetPhysicalDeviceFeatures2, (VkPhysicalDevice d, VkPhysicalDeviceFeatures2* f), (real(d), f))
PASSED(void, vkGetPhysicalDeviceMemoryProperties2, (VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties2* m),
       (real(d), m))
PASSED(void, vkGetPhysicalDeviceQueueFamilyProperties,
       (VkPhysicalDevice d, uint32_t* n, VkQueueFamilyProperties* q), (real(d), n, q))
PASSED(VkResult, vkGetPhysicalDeviceCalibrateableTimeDomainsEXT,
       (VkPhysicalDevice d, uint32_t* count, VkTimeDomainEXT* domains), (real(d), count, domains))
PASSED(void, vkGetPhysicalDeviceExternalBufferProperties,
       (VkPhysicalDevice d, const VkPhysicalDeviceExternalBufferInfo* i, VkExternalBufferProperties* p),
       (real(d), i, p))
PASSED(VkResult, vkCreateDevice,
       (VkPhysicalDevice d, const VkDeviceCreateInfo* i, const VkAllocationCallbacks* a, VkDevice* o),
       (real(d), i, a, o))

// The older headers have no name for it.
using MatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, void*);
MatrixProperties real_matrix_properties;
VKAPI_ATTR VkResult VKAPI_CALL passed_matrix_properties(VkPhysicalDevice d, uint32_t* n, void* p) {
  return real_matrix_properties(real(d), n, p);
}

// What was seen of vkCreateComputePipelines.
std::mutex mutex;
std::condition_variable came;
int made = 0, without_lanes = 0, at_once = 0, most_at_once = 0, awaited = 0;

// Shaders that are refused.
std::map<VkShaderModule, size_t> code_of;
std::set<size_t> refused_codes;

size_t hash_of(const void* code, size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(code), bytes});
}

PFN_vkCreateShaderModule real_vkCreateShaderModule;
VKAPI_ATTR VkResult VKAPI_CALL watched_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                              const VkAllocationCallbacks* a, VkShaderModule* out) {
  const VkResult result = real_vkCreateShaderModule(device, info, a, out);
  const std::lock_guard<std::mutex> lock(mutex);
  if (result == VK_SUCCESS) code_of[*out] = hash_of(info->pCode, info->codeSize);
  return result;
}

bool says_lanes(const VkPipelineShaderStageCreateInfo& stage) {
  for (auto* s = static_cast<const VkBaseInStructure*>(stage.pNext); s; s = s->pNext)
    if (s->sType == VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)
      return reinterpret_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(s)
                 ->requiredSubgroupSize > 0;
  return false;
}

PFN_vkCreateComputePipelines real_vkCreateComputePipelines;
VKAPI_ATTR VkResult VKAPI_CALL watched_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                                 const VkComputePipelineCreateInfo* infos,
                                                 const VkAllocationCallbacks* a, VkPipeline* out) {
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (refused_codes.contains(code_of[infos[0].stage.module])) return VK_ERROR_UNKNOWN;
    made += int(count);
    for (uint32_t i = 0; i < count; ++i) without_lanes += !says_lanes(infos[i].stage);
    most_at_once = std::max(most_at_once, ++at_once);
    came.notify_all();
    // The end of patience is for a test that fails: one that passes does not wait for it.
    if (!came.wait_for(lock, std::chrono::seconds(20), [] { return most_at_once >= awaited; })) awaited = 0;
  }
  const VkResult result = real_vkCreateComputePipelines(device, cache, count, infos, a, out);
  const std::lock_guard<std::mutex> lock(mutex);
  --at_once;
  return result;
}

PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction from) {
  if (!from) return nullptr;
#define REPLACE(function, replacement)                        \
  if (!strcmp(name, #function)) {                             \
    real_##function = reinterpret_cast<PFN_##function>(from); \
    return reinterpret_cast<PFN_vkVoidFunction>(replacement); \
  }
#define REPLACE_PASSED(function) REPLACE(function, passed_##function)
  REPLACE(vkEnumeratePhysicalDevices, list_devices)
  REPLACE(vkGetPhysicalDeviceProperties2, other_properties)
  REPLACE(vkEnumerateDeviceExtensionProperties, other_extensions)
  REPLACE(vkCreateShaderModule, watched_module)
  REPLACE(vkCreateComputePipelines, watched_pipelines)
  REPLACE_PASSED(vkGetPhysicalDeviceFeatures2)
  REPLACE_PASSED(vkGetPhysicalDeviceMemoryProperties2)
  REPLACE_PASSED(vkGetPhysicalDeviceQueueFamilyProperties)
  REPLACE_PASSED(vkGetPhysicalDeviceExternalBufferProperties)
  REPLACE_PASSED(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)
  REPLACE_PASSED(vkCreateDevice)
  if (!strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")) {
    real_matrix_properties = reinterpret_cast<MatrixProperties>(from);
    return reinterpret_cast<PFN_vkVoidFunction>(passed_matrix_properties);
  }
  return from;
}

bool takes(const std::string& word, const char* kind, VkPhysicalDeviceType type, Listed* out) {
  if (word.find(kind) != 0) return false;
  out->type = type;
  return true;
}

}  // namespace

// Devices from now on: a word for each, discrete, integrated or processor, with "-old" behind it one of
// Vulkan 1.2; "" for none, null for those that are there. They are named "mock WORD INDEX".
EXPORT void greta_devices_list(const char* words) {
  lists_all = !words;
  listed_count = 0;
  const std::string all = words ? words : "";
  for (size_t at = 0; at < all.size() && listed_count < kMostDevices;) {
    const size_t end = std::min(all.find(' ', at), all.size());
    const std::string word = all.substr(at, end - at);
    at = end + 1;
    Listed& next = listed[listed_count];
    next = {};
    if (!takes(word, "discrete", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, &next) &&
        !takes(word, "integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, &next))
      takes(word, "processor", VK_PHYSICAL_DEVICE_TYPE_CPU, &next);
    next.old = word.ends_with("-old");
    snprintf(next.name, sizeof next.name, "mock %.16s %u", word.c_str(), listed_count++);
  }
}

// What is seen begins anew. The making of a pipeline waits until so many have been under way at once, or are
// no more awaited.
EXPORT void greta_devices_await(int pipelines_at_once) {
  const std::lock_guard<std::mutex> lock(mutex);
  made = without_lanes = most_at_once = 0;
  awaited = pipelines_at_once;
  came.notify_all();
}
EXPORT void greta_devices_seen(int* pipelines, int* without, int* together) {
  const std::lock_guard<std::mutex> lock(mutex);
  *pipelines = made, *without = without_lanes, *together = most_at_once;
}

// Pipelines of this code are refused from now on; null: of none.
EXPORT void greta_devices_refuse(const void* code, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (code)
    refused_codes.insert(hash_of(code, bytes));
  else
    refused_codes.clear();
}
