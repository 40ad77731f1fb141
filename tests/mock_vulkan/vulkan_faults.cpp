// A libvulkan that stands in front of the real one: calls pass through, but a chosen one fails, or a
// device says that it has less. Tests open it through DeviceOptions::driver_library and set it through
// the greta_faults_* functions of the same library.

#include <atomic>
#include <cstring>

#include "in_front.h"

namespace {

char failing[64] = "";           // the function that fails
std::atomic<int> calls_left{0};  // calls of it that pass before it fails, then ever after
std::atomic<bool> once{false};   // or only once
VkResult failure = VK_SUCCESS;
char hidden_feature[64] = "";

bool fails(const char* name) {
  if (strcmp(failing, name)) return false;
  if (calls_left == 0) {
    if (once) failing[0] = 0;
    return true;
  }
  --calls_left;
  return false;
}

// Functions whose failure is worth a test: R f(...), forwarded unless it is the chosen one.
#define FAULTY(name, parameters, arguments)                 \
  PFN_##name real_##name;                                   \
  VKAPI_ATTR VkResult VKAPI_CALL faulty_##name parameters { \
    return fails(#name) ? failure : real_##name arguments;  \
  }
FAULTY(vkAllocateMemory,
       (VkDevice d, const VkMemoryAllocateInfo* i, const VkAllocationCallbacks* a, VkDeviceMemory* m),
       (d, i, a, m))
FAULTY(vkWaitSemaphores, (VkDevice d, const VkSemaphoreWaitInfo* i, uint64_t t), (d, i, t))
FAULTY(vkCreateComputePipelines,
       (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo* i,
        const VkAllocationCallbacks* a, VkPipeline* p),
       (d, c, n, i, a, p))
FAULTY(vkCreateDevice,
       (VkPhysicalDevice p, const VkDeviceCreateInfo* i, const VkAllocationCallbacks* a, VkDevice* d),
       (p, i, a, d))
FAULTY(vkEndCommandBuffer, (VkCommandBuffer c), (c))
FAULTY(vkGetMemoryHostPointerPropertiesEXT,
       (VkDevice d, VkExternalMemoryHandleTypeFlagBits t, const void* h, VkMemoryHostPointerPropertiesEXT* p),
       (d, t, h, p))
FAULTY(vkCreateCommandPool,
       (VkDevice d, const VkCommandPoolCreateInfo* i, const VkAllocationCallbacks* a, VkCommandPool* p),
       (d, i, a, p))

// Submissions that are counted, with their command buffers.
std::atomic<int> submits{0}, submitted_buffers{0};
PFN_vkQueueSubmit2 real_vkQueueSubmit2;
VKAPI_ATTR VkResult VKAPI_CALL faulty_vkQueueSubmit2(VkQueue q, uint32_t n, const VkSubmitInfo2* s,
                                                     VkFence f) {
  if (fails("vkQueueSubmit2")) return failure;
  ++submits;
  for (uint32_t i = 0; i < n; ++i) submitted_buffers += int(s[i].commandBufferInfoCount);
  return real_vkQueueSubmit2(q, n, s, f);
}

// A launch that is lost, and barriers that are counted.
std::atomic<int> barriers{0};
PFN_vkCmdDispatch real_vkCmdDispatch;
VKAPI_ATTR void VKAPI_CALL lost_dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
  if (!fails("vkCmdDispatch")) real_vkCmdDispatch(c, x, y, z);
}
PFN_vkCmdPipelineBarrier2 real_vkCmdPipelineBarrier2;
VKAPI_ATTR void VKAPI_CALL counted_barrier(VkCommandBuffer c, const VkDependencyInfo* i) {
  ++barriers;
  real_vkCmdPipelineBarrier2(c, i);
}

template <class Struct>
Struct* find(void* chain, VkStructureType type) {
  for (auto* s = static_cast<VkBaseOutStructure*>(chain); s; s = s->pNext)
    if (s->sType == type) return reinterpret_cast<Struct*>(s);
  return nullptr;
}

PFN_vkGetPhysicalDeviceFeatures2 real_features;
VKAPI_ATTR void VKAPI_CALL fewer_features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
  real_features(device, out);
  if (strstr(hidden_feature, "shaderInt64")) out->features.shaderInt64 = VK_FALSE;
  if (auto* f =
          find<VkPhysicalDeviceVulkan12Features>(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES))
    if (strstr(hidden_feature, "timelineSemaphore")) f->timelineSemaphore = VK_FALSE;
}

PFN_vkGetPhysicalDeviceProperties2 real_properties;
VKAPI_ATTR void VKAPI_CALL older_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_properties(device, out);
  if (strstr(hidden_feature, "version")) out->properties.apiVersion = VK_API_VERSION_1_2;
  if (strstr(hidden_feature, "processor"))
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (strstr(hidden_feature, "host's memory"))
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction real) {
  if (!real) return nullptr;
#define REPLACE(function, keep, replacement)                  \
  if (!strcmp(name, #function)) {                             \
    keep = reinterpret_cast<PFN_##function>(real);            \
    return reinterpret_cast<PFN_vkVoidFunction>(replacement); \
  }
#define REPLACE_FAULTY(function) REPLACE(function, real_##function, faulty_##function)
  REPLACE_FAULTY(vkAllocateMemory)
  REPLACE_FAULTY(vkQueueSubmit2)
  REPLACE_FAULTY(vkWaitSemaphores)
  REPLACE_FAULTY(vkCreateComputePipelines)
  REPLACE_FAULTY(vkCreateDevice)
  REPLACE_FAULTY(vkEndCommandBuffer)
  REPLACE_FAULTY(vkGetMemoryHostPointerPropertiesEXT)
  REPLACE_FAULTY(vkCreateCommandPool)
  REPLACE(vkCmdDispatch, real_vkCmdDispatch, lost_dispatch)
  REPLACE(vkCmdPipelineBarrier2, real_vkCmdPipelineBarrier2, counted_barrier)
  REPLACE(vkGetPhysicalDeviceFeatures2, real_features, fewer_features)
  REPLACE(vkGetPhysicalDeviceProperties2, real_properties, older_properties)
  return real;
}

}  // namespace

// From now on the call of `function` after `passing` more fails with `result`, and all later ones unless
// `only_once`; "" ends it. A vkCmdDispatch that fails is lost.
EXPORT void greta_faults_set(const char* function, int passing, int result, int only_once) {
  once = only_once != 0;
  strncpy(failing, function, sizeof failing - 1);
  calls_left = passing;
  failure = VkResult(result);
}

// Devices lack what `names` names: shaderInt64, timelineSemaphore, version; without "processor" one is an
// integrated GPU, without "host's memory" one with memory of its own.
EXPORT void greta_faults_hide(const char* names) {
  strncpy(hidden_feature, names, sizeof hidden_feature - 1);
}

// vkQueueSubmit2 since the last question, and the command buffers that they had.
EXPORT void greta_faults_submits(int* calls, int* buffers) {
  *calls = submits.exchange(0);
  *buffers = submitted_buffers.exchange(0);
}

// vkCmdPipelineBarrier2 since the last question.
EXPORT int greta_faults_barriers() { return barriers.exchange(0); }
