// Memory and timelines that others know too, by opaque file descriptors or as handles of the host's.
#include <fcntl.h>

#include <cstring>

#include "backends/vulkan/vulkan.h"

namespace greta {

namespace {

constexpr auto kMemoryFd = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr auto kTimelineFd = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;

using SharedPoint = std::shared_ptr<VulkanTimeline>;

const SharedPoint& point_of(const SharedTimeline& timeline) {
  return *static_cast<const SharedPoint*>(timeline.handle);
}

Status check_descriptor(int descriptor) {
  if (fcntl(descriptor, F_GETFD) >= 0) return {};
  return fail(Code::Argument, "%d is no descriptor of a file", descriptor);
}

}  // namespace

// The driver's function of an extension that is enabled.
template <class Function>
Status VulkanDevice::find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(instance_->vkGetDeviceProcAddr(handle, name));
  return *out ? Status{} : fail(Code::Unsupported, "%s has no %s", physical.info.name, name);
}

Status VulkanDevice::shares_memory(VkExternalMemoryFeatureFlags wanted, bool* alone) {
  auto ask =
      tagged<VkPhysicalDeviceExternalBufferInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  ask.usage = kBufferUsage;
  ask.handleType = kMemoryFd;
  auto answer = tagged<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  instance_->vkGetPhysicalDeviceExternalBufferProperties(physical.handle, &ask, &answer);
  const VkExternalMemoryFeatureFlags can = answer.externalMemoryProperties.externalMemoryFeatures;
  *alone = can & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  if (physical.has_memory_fd && (can & wanted)) return {};
  return fail(Code::Unsupported, "%s shares no memory by file descriptors", physical.info.name);
}

// A buffer over memory that `next` exports or imports. `needs` is what the driver wants of it.
Status VulkanDevice::bind_shared(uint64_t bytes, int type, bool alone, VkBaseInStructure* next,
                                 VulkanBuffer* out) {
  auto dedicated =
      tagged<VkMemoryDedicatedAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO);
  auto external =
      tagged<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  VkMemoryRequirements needs;
  external.handleTypes = kMemoryFd;
  GRETA_TRY(create_buffer(round_up(bytes, kBufferAlignment), &external, out, &needs));
  if (out->bytes && out->bytes < needs.size)
    return fail(Code::Argument, "an allocation of %llu bytes, the buffer needs %llu",
                (unsigned long long)out->bytes, (unsigned long long)needs.size);
  if (!out->bytes) out->bytes = needs.size;
  if (type >= 0 && (uint32_t(type) >= physical.memory.memoryTypeCount || !(needs.memoryTypeBits >> type & 1)))
    return fail(Code::Argument, "memory of type %d cannot hold such a buffer", type);
  dedicated.buffer = out->buffer;
  if (alone) next->pNext = reinterpret_cast<VkBaseInStructure*>(&dedicated);
  out->type = type < 0 ? type_of(Memory::Device, needs.memoryTypeBits) : type;
  return bind_memory(out->type, next, out);
}

Status VulkanDevice::give_shared(const Status& status, uint64_t bytes, std::unique_ptr<VulkanBuffer> made,
                                 Buffer* out) {
  if (!status.ok()) {
    destroy_buffer(*made);
    return status;
  }
  *out = {made.get(), address_of(*made), nullptr, bytes};
  (void)made.release();
  return {};
}

Status VulkanDevice::allocate_shared(uint64_t bytes, Buffer* out) {
  bool alone = false;
  GRETA_TRY(usable());
  GRETA_TRY(check_allocation(physical.info, bytes));
  GRETA_TRY(shares_memory(VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT, &alone));
  auto made = std::make_unique<VulkanBuffer>();
  auto exported = tagged<VkExportMemoryAllocateInfo>(VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
  exported.handleTypes = kMemoryFd;
  made->counted = true;
  const Status status =
      bind_shared(bytes, -1, alone, reinterpret_cast<VkBaseInStructure*>(&exported), made.get());
  if (status.ok()) used_bytes_ += made->bytes;
  return give_shared(status, bytes, std::move(made), out);
}

Status VulkanDevice::export_memory(const Buffer& buffer, ExportedMemory* out) {
  const auto& state = *static_cast<const VulkanBuffer*>(buffer.handle);
  PFN_vkGetMemoryFdKHR get = nullptr;
  GRETA_TRY(usable());
  GRETA_TRY(find("vkGetMemoryFdKHR", &get));
  auto info = tagged<VkMemoryGetFdInfoKHR>(VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR);
  info.memory = state.memory;
  info.handleType = kMemoryFd;
  GRETA_TRY(result(get(handle, &info, &out->descriptor), "vkGetMemoryFdKHR"));
  out->memory_type = uint32_t(state.type);
  out->allocation_bytes = state.bytes;
  return {};
}

Status VulkanDevice::import_memory(const ExportedMemory& memory, uint64_t bytes, Buffer* out) {
  bool alone = false;
  GRETA_TRY(usable());
  GRETA_TRY(check_allocation(physical.info, bytes));
  GRETA_TRY(check_descriptor(memory.descriptor));
  GRETA_TRY(shares_memory(VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT, &alone));
  auto made = std::make_unique<VulkanBuffer>();
  auto imported = tagged<VkImportMemoryFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  imported.handleType = kMemoryFd;
  imported.fd = memory.descriptor;
  made->bytes = memory.allocation_bytes;
  const Status status = bind_shared(bytes, int(std::min(memory.memory_type, 32u)), alone,
                                    reinterpret_cast<VkBaseInStructure*>(&imported), made.get());
  return give_shared(within(status, "descriptor %d", memory.descriptor), bytes, std::move(made), out);
}

// --- timelines

Status VulkanDevice::make_timeline(const void* next, SharedTimeline* out) {
  auto made = std::make_shared<VulkanTimeline>(*this);
  made->submitted = ~uint64_t(0);  // its values come from anywhere, so none is held back
  auto type = tagged<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                                const_cast<void*>(next));
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const auto info = tagged<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  GRETA_TRY(usable());
  GRETA_TRY(result(vk.vkCreateSemaphore(handle, &info, nullptr, &made->semaphore), "vkCreateSemaphore"));
  out->handle = new SharedPoint(std::move(made));
  return {};
}

Status VulkanDevice::shares_timelines(VkExternalSemaphoreFeatureFlags wanted) {
  const auto ask = reinterpret_cast<PFN_vkGetPhysicalDeviceExternalSemaphoreProperties>(
      instance_->find("vkGetPhysicalDeviceExternalSemaphoreProperties"));
  auto type = tagged<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = tagged<VkPhysicalDeviceExternalSemaphoreInfo>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO, &type);
  info.handleType = kTimelineFd;
  auto answer = tagged<VkExternalSemaphoreProperties>(VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES);
  if (ask) ask(physical.handle, &info, &answer);
  if (physical.has_semaphore_fd && (answer.externalSemaphoreFeatures & wanted)) return {};
  return fail(Code::Unsupported, "%s shares no timelines by file descriptors", physical.info.name);
}

Status VulkanDevice::create_shared(SharedTimeline* out) {
  GRETA_TRY(shares_timelines(VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT));
  auto exported = tagged<VkExportSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
  exported.handleTypes = kTimelineFd;
  return make_timeline(&exported, out);
}

Status VulkanDevice::export_timeline(const SharedTimeline& timeline, int* out_descriptor) {
  PFN_vkGetSemaphoreFdKHR get = nullptr;
  GRETA_TRY(usable());
  GRETA_TRY(find("vkGetSemaphoreFdKHR", &get));
  auto info = tagged<VkSemaphoreGetFdInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR);
  info.semaphore = point_of(timeline)->semaphore;
  info.handleType = kTimelineFd;
  return result(get(handle, &info, out_descriptor), "vkGetSemaphoreFdKHR");
}

Status VulkanDevice::import_timeline(int descriptor, SharedTimeline* out) {
  PFN_vkImportSemaphoreFdKHR import = nullptr;
  SharedTimeline made;
  GRETA_TRY(check_descriptor(descriptor));
  GRETA_TRY(shares_timelines(VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT));
  GRETA_TRY(find("vkImportSemaphoreFdKHR", &import));
  GRETA_TRY(make_timeline(nullptr, &made));
  auto info = tagged<VkImportSemaphoreFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR);
  info.semaphore = point_of(made)->semaphore;
  info.handleType = kTimelineFd;
  info.fd = descriptor;
  const Status status = result(import(handle, &info), "vkImportSemaphoreFdKHR");
  if (status.ok())
    *out = made;
  else
    destroy_shared(made);
  return within(status, "descriptor %d", descriptor);
}

Status VulkanDevice::adopt_timeline(uint64_t semaphore, SharedTimeline* out) {
  GRETA_TRY(usable());
  if (!adopted_) return fail(Code::Argument, "%s is no device of the host's", physical.info.name);
  auto made = std::make_shared<VulkanTimeline>(*this);
  made->submitted = ~uint64_t(0);
  made->adopted = true;
  memcpy(&made->semaphore, &semaphore, sizeof semaphore);
  out->handle = new SharedPoint(std::move(made));
  return {};
}

void VulkanDevice::destroy_shared(SharedTimeline& timeline) {
  delete static_cast<SharedPoint*>(timeline.handle);
  timeline = {};
}

Status VulkanDevice::value_of(const SharedTimeline& timeline, uint64_t* out) {
  GRETA_TRY(usable());
  return result(vk.vkGetSemaphoreCounterValue(handle, point_of(timeline)->semaphore, out),
                "vkGetSemaphoreCounterValue");
}

Status VulkanDevice::wait_shared(const SharedTimeline& timeline, uint64_t value) {
  constexpr uint64_t kSliceNs = 100'000'000;  // how often a wait looks whether the device was lost
  auto info = tagged<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &point_of(timeline)->semaphore;
  info.pValues = &value;
  for (;;) {
    GRETA_TRY(usable());
    const VkResult waited = vk.vkWaitSemaphores(handle, &info, kSliceNs);
    if (waited != VK_TIMEOUT) return result(waited, "vkWaitSemaphores");
  }
}

Status VulkanStream::signal_shared(const SharedTimeline& timeline, uint64_t value) {
  GRETA_TRY(not_capturing("signal"));
  GRETA_TRY(device_.usable());
  GRETA_TRY(close());
  open_.signals.push_back({point_of(timeline), value});
  return seal(true);
}

Status VulkanStream::wait_for_shared(const SharedTimeline& timeline, uint64_t value) {
  GRETA_TRY(not_capturing("wait_for"));
  GRETA_TRY(device_.usable());
  GRETA_TRY(seal(true));
  open_.waits.push_back({point_of(timeline), value});
  return {};
}

}  // namespace greta
