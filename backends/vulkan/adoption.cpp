// Devices, queues, buffers and semaphores of the host's.
#include <algorithm>
#include <cstring>

#include "backends/vulkan/vulkan.h"

namespace greta {

Status VulkanInstance::adopt(const HostHandles& handles) {
  vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(handles.get_instance_proc_addr);
  instance_ = static_cast<VkInstance>(handles.instance);
  adopted_ = true;
#define INSTANCE(name)                              \
  name = reinterpret_cast<PFN_##name>(find(#name)); \
  if (!name) return fail(Code::Unsupported, "the host's instance has no %s", #name);
#include "backends/vulkan/symbols.def"
  devices_ = {static_cast<VkPhysicalDevice>(handles.physical_device)};
  return {};
}

// The physical device as the host has opened it: what was not enabled is not there. A device that is lost
// would be lost to the host, so it is not tried whether kernels may wait for each other.
static Status narrow(const VulkanInstance& instance, const HostHandles& handles, VulkanPhysical* physical) {
  const auto enabled = [&](const char* name) {
    return std::ranges::any_of(handles.extensions,
                               [&](const char* each) { return each && !strcmp(each, name); });
  };
  uint32_t count = 0;
  instance.vkGetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.vkGetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, families.data());
  if (handles.queue_family >= count || !(families[handles.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    return fail(Code::Argument, "queue family %u of %u computes nothing", handles.queue_family, count);
  physical->queue_family = handles.queue_family;
  physical->timestamp_bits = families[handles.queue_family].timestampValidBits;
  physical->has_matrix = physical->has_matrix && enabled(kCooperativeMatrixExtension);
  physical->has_budget = physical->has_budget && enabled(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  physical->has_memory_fd = physical->has_memory_fd && enabled(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  physical->has_semaphore_fd =
      physical->has_semaphore_fd && enabled(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  if (!enabled(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) physical->import_alignment = 0;
  uint32_t without = kVulkanChain;
  if (!physical->has_matrix) {
    without |= kVulkanCoopMatrix | kVulkanCoopMatrixHalf | kVulkanCoopMatrixMany;
    std::fill_n(physical->matrix, 3, 0);
  }
  physical->info.features &= ~without;
  return {};
}

Status VulkanDevice::adopt(const HostHandles& handles, const DeviceOptions& options) {
  const void* const needed[] = {handles.instance, handles.physical_device, handles.device, handles.queue};
  const bool missing = std::ranges::any_of(needed, [](const void* each) { return !each; });
  if (missing || !handles.get_instance_proc_addr)
    return fail(Code::Argument, "the host's Vulkan: a handle or vkGetInstanceProcAddr is NULL");
  if (!handles.lock != !handles.unlock)
    return fail(Code::Argument, "the host's Vulkan: lock and unlock must both be set, or neither of them");
  adopted_ = true;
  instance_ = std::make_unique<VulkanInstance>();
  GRETA_TRY(instance_->adopt(handles));
  GRETA_TRY(inspect_physical(0, options));
  GRETA_TRY(within(narrow(*instance_, handles, &physical), "%s", physical.info.name));
  queue.set(static_cast<VkQueue>(handles.queue), {handles.lock, handles.unlock, handles.lock_user});
  GRETA_TRY(within(use(static_cast<VkDevice>(handles.device)), "%s", physical.info.name));
  return prove(options);
}

Status VulkanDevice::adopt_buffer(uint64_t buffer, uint64_t bytes, Buffer* out) {
  GRETA_TRY(usable());
  if (!adopted_) return fail(Code::Argument, "%s is no device of the host's", physical.info.name);
  auto made = std::make_unique<VulkanBuffer>();
  memcpy(&made->buffer, &buffer, sizeof buffer);
  made->adopted = true;
  *out = {made.get(), address_of(*made), nullptr, bytes};
  (void)made.release();
  return {};
}

Status adopt_device(const HostHandles& handles, const DeviceOptions& options, Device** out) {
  auto device = std::make_unique<VulkanDevice>();
  GRETA_TRY(device->adopt(handles, options));
  *out = device.release();
  return {};
}

}  // namespace greta
