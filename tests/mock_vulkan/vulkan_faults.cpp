// A libvulkan that stands in front of the real one: calls pass through, but a chosen one fails, or a
// device says that it has less. Tests open it through DeviceOptions::driver_library and set it through
// the greta_faults_* functions of the same library.

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "backends/vulkan/extensions.h"
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
FAULTY(vkCreateComputePipelines,
       (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo* i,
        const VkAllocationCallbacks* a, VkPipeline* p),
       (d, c, n, i, a, p))
FAULTY(vkEndCommandBuffer, (VkCommandBuffer c), (c))
FAULTY(vkSignalSemaphore, (VkDevice d, const VkSemaphoreSignalInfo* i), (d, i))
FAULTY(vkGetMemoryHostPointerPropertiesEXT,
       (VkDevice d, VkExternalMemoryHandleTypeFlagBits t, const void* h, VkMemoryHostPointerPropertiesEXT* p),
       (d, t, h, p))
FAULTY(vkCreateCommandPool,
       (VkDevice d, const VkCommandPoolCreateInfo* i, const VkAllocationCallbacks* a, VkCommandPool* p),
       (d, i, a, p))

// A GPU that hangs: it never reaches a value of a semaphore.
std::atomic<bool> hangs{false};
PFN_vkWaitSemaphores real_vkWaitSemaphores;
VKAPI_ATTR VkResult VKAPI_CALL faulty_vkWaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo* i,
                                                       uint64_t ns) {
  if (fails("vkWaitSemaphores")) return failure;
  if (!hangs) return real_vkWaitSemaphores(d, i, ns);
  const timespec a_while = {0, 1'000'000};
  nanosleep(&a_while, nullptr);
  return VK_TIMEOUT;
}
PFN_vkGetSemaphoreCounterValue real_vkGetSemaphoreCounterValue;
VKAPI_ATTR VkResult VKAPI_CALL stuck_counter(VkDevice d, VkSemaphore s, uint64_t* value) {
  const VkResult result = real_vkGetSemaphoreCounterValue(d, s, value);
  if (hangs) *value = 0;
  return result;
}

// Memory in two heaps, of which the second is called the host's, as RADV lists that of an APU. Both are the
// same memory. Only allocations of the first can fail.
bool has_two_heaps() { return strstr(hidden_feature, "one heap"); }
constexpr VkDeviceSize kHeapBytes[] = {VkDeviceSize(2) << 30, VkDeviceSize(1) << 30};

PFN_vkGetPhysicalDeviceMemoryProperties2 real_vkGetPhysicalDeviceMemoryProperties2;
VKAPI_ATTR void VKAPI_CALL memory_of_two(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* out) {
  real_vkGetPhysicalDeviceMemoryProperties2(device, out);
  if (!has_two_heaps()) return;
  VkPhysicalDeviceMemoryProperties& memory = out->memoryProperties;
  memory.memoryHeapCount = memory.memoryTypeCount = 2;
  for (uint32_t i = 0; i < 2; ++i) {
    memory.memoryHeaps[i] = {kHeapBytes[i], VkMemoryHeapFlags(i ? 0 : VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)};
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    memory.memoryTypes[i] = {visible | VkMemoryPropertyFlags(i ? 0 : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT), i};
  }
  for (auto* next = static_cast<VkBaseOutStructure*>(out->pNext); next; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      auto* budget = reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next);
      for (uint32_t i = 0; i < 2; ++i) budget->heapBudget[i] = kHeapBytes[i], budget->heapUsage[i] = 0;
    }
}
PFN_vkGetBufferMemoryRequirements real_vkGetBufferMemoryRequirements;
VKAPI_ATTR void VKAPI_CALL needs_of_two(VkDevice d, VkBuffer b, VkMemoryRequirements* out) {
  real_vkGetBufferMemoryRequirements(d, b, out);
  if (has_two_heaps()) out->memoryTypeBits = 3;
}
std::atomic<int> of_second{0};
PFN_vkAllocateMemory real_vkAllocateMemory;
VKAPI_ATTR VkResult VKAPI_CALL faulty_vkAllocateMemory(VkDevice d, const VkMemoryAllocateInfo* i,
                                                       const VkAllocationCallbacks* a, VkDeviceMemory* m) {
  VkMemoryAllocateInfo info = *i;
  if (has_two_heaps() && info.memoryTypeIndex == 1) {
    ++of_second;
    info.memoryTypeIndex = 0;
  } else if (fails("vkAllocateMemory")) {
    return failure;
  }
  return real_vkAllocateMemory(d, &info, a, m);
}

// Cooperative matrices that the device does not have: shaders that use them do nothing.
bool has_false_matrices() { return strstr(hidden_feature, "no matrices"); }
using namespace greta;

PFN_vkEnumerateDeviceExtensionProperties real_vkEnumerateDeviceExtensionProperties;
VKAPI_ATTR VkResult VKAPI_CALL more_extensions(VkPhysicalDevice d, const char* layer, uint32_t* count,
                                               VkExtensionProperties* out) {
  const uint32_t room = *count;
  const VkResult result = real_vkEnumerateDeviceExtensionProperties(d, layer, count, out);
  if (!has_false_matrices() || result != VK_SUCCESS) return result;
  if (!out) return ++*count, result;
  if (*count == room) return VK_INCOMPLETE;
  VkExtensionProperties added = {"", 1};
  strcpy(added.extensionName, kCooperativeMatrixExtension);
  out[(*count)++] = added;
  return result;
}
VKAPI_ATTR VkResult VKAPI_CALL false_matrices(VkPhysicalDevice, uint32_t* count,
                                              CooperativeMatrixProperties* out) {
  *count = 1;
  if (out)
    out->m = out->n = out->k = 16, out->a_type = out->b_type = kComponentFloat16,
    out->c_type = out->result_type = kComponentFloat32, out->saturating = VK_FALSE,
    out->scope = kScopeSubgroup;
  return VK_SUCCESS;
}
PFN_vkCreateDevice real_vkCreateDevice;
VKAPI_ATTR VkResult VKAPI_CALL faulty_vkCreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo* i,
                                                     const VkAllocationCallbacks* a, VkDevice* d) {
  if (fails("vkCreateDevice")) return failure;
  if (!has_false_matrices()) return real_vkCreateDevice(p, i, a, d);
  VkDeviceCreateInfo info = *i;
  std::vector<const char*> names(i->ppEnabledExtensionNames,
                                 i->ppEnabledExtensionNames + i->enabledExtensionCount);
  std::erase_if(names, [](const char* name) { return !strcmp(name, kCooperativeMatrixExtension); });
  info.enabledExtensionCount = uint32_t(names.size());
  info.ppEnabledExtensionNames = names.data();
  for (auto* s = static_cast<VkBaseOutStructure*>(const_cast<void*>(info.pNext)); s; s = s->pNext)
    if (s->pNext && s->pNext->sType == kCooperativeMatrixFeaturesType) s->pNext = s->pNext->pNext;
  return real_vkCreateDevice(p, &info, a, d);
}
PFN_vkCreateShaderModule real_vkCreateShaderModule;
VKAPI_ATTR VkResult VKAPI_CALL empty_module(VkDevice d, const VkShaderModuleCreateInfo* i,
                                            const VkAllocationCallbacks* a, VkShaderModule* out) {
  // void main() {} with groups of one thread, in SPIR-V 1.0.
  static const uint32_t nothing[] = {
      0x07230203, 0x00010000, 0,  5,          0,     //
      0x00020011, 1,                                 // OpCapability Shader
      0x0003000e, 0,          1,                     // OpMemoryModel Logical GLSL450
      0x0005000f, 5,          3,  0x6e69616d, 0,     // OpEntryPoint GLCompute %3 "main"
      0x00060010, 3,          17, 1,          1, 1,  // OpExecutionMode %3 LocalSize 1 1 1
      0x00020013, 1,                                 // %1 = OpTypeVoid
      0x00030021, 2,          1,                     // %2 = OpTypeFunction %1
      0x00050036, 1,          3,  0,          2,     // %3 = OpFunction
      0x000200f8, 4,                                 // %4 = OpLabel
      0x000100fd, 0x00010038};                       // OpReturn, OpFunctionEnd
  constexpr uint32_t kCapability = 0x00020011, kMatrices = 6022, kHead = 5;
  bool uses_matrices = false;
  for (size_t w = kHead; w + 1 < i->codeSize / 4 && i->pCode[w] == kCapability; w += 2)
    uses_matrices |= i->pCode[w + 1] == kMatrices;
  VkShaderModuleCreateInfo info = *i;
  if (has_false_matrices() && uses_matrices) info.codeSize = sizeof nothing, info.pCode = nothing;
  return real_vkCreateShaderModule(d, &info, a, out);
}

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
  if (auto* f = find<CooperativeMatrixFeatures>(out, kCooperativeMatrixFeaturesType))
    if (has_false_matrices()) f->cooperativeMatrix = VK_TRUE;
}

PFN_vkGetPhysicalDeviceProperties2 real_properties;
VKAPI_ATTR void VKAPI_CALL older_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_properties(device, out);
  constexpr uint32_t kAmd = 0x1002;
  if (strstr(hidden_feature, "other makers")) out->properties.vendorID = kAmd;
  if (strstr(hidden_feature, "version")) out->properties.apiVersion = VK_API_VERSION_1_2;
  if (strstr(hidden_feature, "processor"))
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (strstr(hidden_feature, "host's memory"))
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction real) {
  if (has_false_matrices() && !strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"))
    return reinterpret_cast<PFN_vkVoidFunction>(false_matrices);
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
  REPLACE_FAULTY(vkSignalSemaphore)
  REPLACE_FAULTY(vkGetMemoryHostPointerPropertiesEXT)
  REPLACE_FAULTY(vkCreateCommandPool)
  REPLACE(vkGetSemaphoreCounterValue, real_vkGetSemaphoreCounterValue, stuck_counter)
  REPLACE(vkGetPhysicalDeviceMemoryProperties2, real_vkGetPhysicalDeviceMemoryProperties2, memory_of_two)
  REPLACE(vkGetBufferMemoryRequirements, real_vkGetBufferMemoryRequirements, needs_of_two)
  REPLACE(vkEnumerateDeviceExtensionProperties, real_vkEnumerateDeviceExtensionProperties, more_extensions)
  REPLACE(vkCreateShaderModule, real_vkCreateShaderModule, empty_module)
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
// integrated GPU, without "host's memory" one with memory of its own; without "one heap" there are a local
// one of 2 GiB and another of 1 GiB; without "no matrices" it says that it has cooperative ones; without
// "other makers" it is AMD's.
EXPORT void greta_faults_hide(const char* names) {
  strncpy(hidden_feature, names, sizeof hidden_feature - 1);
}

// Whether no work ends any more.
EXPORT void greta_faults_hang(int on) { hangs = on != 0; }

// Allocations of the second heap since the last question.
EXPORT int greta_faults_second() { return of_second.exchange(0); }

// vkQueueSubmit2 since the last question, and the command buffers that they had.
EXPORT void greta_faults_submits(int* calls, int* buffers) {
  *calls = submits.exchange(0);
  *buffers = submitted_buffers.exchange(0);
}

// vkCmdPipelineBarrier2 since the last question.
EXPORT int greta_faults_barriers() { return barriers.exchange(0); }
