// Buffers. Each is a VkBuffer with memory and an address of its own.
#include <algorithm>
#include <bit>

#include "backends/vulkan/vulkan.h"

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Memory with other properties (protected, lazily allocated, device-uncached) is never chosen.
constexpr VkMemoryPropertyFlags kOrdinary = kLocal | kVisible | kCoherent | kCached;

// The properties that memory of a kind must have, should have and should not have.
struct MemoryWish {
  VkMemoryPropertyFlags need, like, dislike;
};

MemoryWish wish_of(Memory memory, bool unified) {
  switch (memory) {
    case Memory::Upload:
      return {kVisible | kCoherent, 0, kLocal | kCached};
    case Memory::Readback:
      return {kVisible | kCoherent, kCached, kLocal};
    case Memory::Device:
      break;
  }
  // On other devices the host may see only a small part of the memory.
  return unified ? MemoryWish{kLocal, kVisible | kCoherent | kCached, 0} : MemoryWish{kLocal, 0, kVisible};
}

int choose_type(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed, const MemoryWish& wish) {
  int best = -1, best_score = 0;
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & wish.need) != wish.need || flags & ~kOrdinary) continue;
    const int score = 100 + 10 * std::popcount(flags & wish.like) - 10 * std::popcount(flags & wish.dislike);
    if (score > best_score) best = int(i), best_score = score;
  }
  return best;
}

}  // namespace

// What is free of the memory that the firmware has set aside for an AMD GPU, which is none of the host's.
static uint64_t set_aside(const std::string& folder) {
  const auto read = [&](const char* file) {
    SystemText text;
    const uint64_t number = text.read((folder + file).c_str()) ? text.number_after("") : SystemText::kNone;
    return number == SystemText::kNone ? 0 : number;
  };
  const uint64_t total = read("/mem_info_vram_total"), used = read("/mem_info_vram_used");
  return total - std::min(total, used);
}

uint64_t VulkanDevice::memory_free() const {
  if (out_of_reach()) return 0;
  const DeviceInfo& info = physical.info;
  auto budget = tagged<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto memory = tagged<VkPhysicalDeviceMemoryProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, physical.has_budget ? &budget : nullptr);
  instance_->vkGetPhysicalDeviceMemoryProperties2(physical.handle, &memory);
  const bool unified = info.unified_memory;
  uint64_t largest = 0, all = 0;  // free in a local heap, and in all heaps
  for (uint32_t i = 0; i < physical.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = physical.memory.memoryHeaps[i];
    const bool local = heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    if (!local && !unified) continue;
    const uint64_t limit = physical.has_budget ? budget.heapBudget[i] : heap.size;
    const uint64_t used = physical.has_budget ? budget.heapUsage[i] : unified ? 0 : used_bytes_.load();
    const uint64_t here = limit > used ? limit - used : 0;
    largest = std::max(largest, here);
    all += here;
  }
  if (!unified) return std::min(largest, info.memory_bytes);
  if (!physical.has_budget) all -= std::min(all, used_bytes_.load());
  // A driver may promise more of the host's memory than there is, and lose the device at a submission.
  const uint64_t there =
      memory_available_bytes() + set_aside(system_root_ + "/sys/bus/pci/devices/" + info.pci);
  return std::min({all, there, info.memory_bytes});
}

Status VulkanDevice::create_buffer(uint64_t bytes, const void* next, VulkanBuffer* out,
                                   VkMemoryRequirements* needs) {
  auto info = tagged<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.pNext = next;
  info.size = bytes;
  info.usage = kBufferUsage;
  GRETA_TRY(result(vk.vkCreateBuffer(handle, &info, nullptr, &out->buffer), "vkCreateBuffer"));
  vk.vkGetBufferMemoryRequirements(handle, out->buffer, needs);
  return {};
}

Status VulkanDevice::bind_memory(int type, void* next, VulkanBuffer* out) {
  if (type < 0) return fail(Code::Unsupported, "the driver has no memory of this kind");
  auto flags = tagged<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, next);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto allocate = tagged<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags);
  allocate.allocationSize = out->bytes;
  allocate.memoryTypeIndex = uint32_t(type);
  GRETA_TRY(result(vk.vkAllocateMemory(handle, &allocate, nullptr, &out->memory), "vkAllocateMemory"));
  return result(vk.vkBindBufferMemory(handle, out->buffer, out->memory, 0), "vkBindBufferMemory");
}

int VulkanDevice::type_of(Memory memory, uint32_t allowed) const {
  return choose_type(physical.memory, allowed, wish_of(memory, physical.info.unified_memory));
}

// Of memory that is the host's, drivers call a part local; the other part serves as well once that is full.
Status VulkanDevice::bind_memory_of(Memory memory, uint32_t allowed, VulkanBuffer* out, int* type) {
  const bool unified = physical.info.unified_memory;
  *type = type_of(memory, allowed);
  const Status status = bind_memory(*type, nullptr, out);
  if (status.code != Code::Memory || memory != Memory::Device || !unified) return status;
  const VkMemoryType* const types = physical.memory.memoryTypes;
  for (uint32_t i = 0; i < physical.memory.memoryTypeCount; ++i)
    if (types[i].heapIndex == types[*type].heapIndex) allowed &= ~(1u << i);
  const int other = choose_type(physical.memory, allowed, {kVisible | kCoherent, kLocal, 0});
  if (other < 0) return status;
  clear_error_text();
  *type = other;
  return bind_memory(other, nullptr, out);
}

Status VulkanDevice::allocate_memory(uint64_t bytes, Memory memory, VulkanBuffer* out, void** mapped) {
  VkMemoryRequirements needs;
  GRETA_TRY(create_buffer(bytes, nullptr, out, &needs));
  out->bytes = needs.size;
  int type = -1;
  GRETA_TRY(bind_memory_of(memory, needs.memoryTypeBits, out, &type));
  const VkMemoryPropertyFlags has = physical.memory.memoryTypes[type].propertyFlags;
  out->counted = (has & kLocal) || physical.info.unified_memory;
  constexpr VkMemoryPropertyFlags kMappable = kVisible | kCoherent;
  if ((has & kMappable) == kMappable && (memory != Memory::Device || physical.info.unified_memory))
    GRETA_TRY(result(vk.vkMapMemory(handle, out->memory, 0, VK_WHOLE_SIZE, 0, mapped), "vkMapMemory"));
  return {};
}

// Imports `out->bytes` bytes of host memory. The address and the size are aligned.
Status VulkanDevice::import_memory(uint64_t address, bool writable, VulkanBuffer* out) {
  void* const pages = reinterpret_cast<void*>(address);
  auto external =
      tagged<VkExternalMemoryBufferCreateInfo>(VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = kHostPages;
  VkMemoryRequirements needs;
  GRETA_TRY(create_buffer(out->bytes, &external, out, &needs));
  if (needs.size > out->bytes)
    return fail(Code::Unsupported, "the driver asks for more memory than was given");
  auto host = tagged<VkMemoryHostPointerPropertiesEXT>(VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  GRETA_TRY(result(host_pointer_properties_(handle, kHostPages, pages, &host),
                   "vkGetMemoryHostPointerPropertiesEXT"));
  auto import =
      tagged<VkImportMemoryHostPointerInfoEXT>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  import.handleType = kHostPages;
  import.pHostPointer = pages;
  // What the device writes, the host sees without more ado.
  const MemoryWish wish =
      writable ? MemoryWish{kVisible | kCoherent, kCached, kLocal} : MemoryWish{0, kLocal | kCached, 0};
  return bind_memory(choose_type(physical.memory, needs.memoryTypeBits & host.memoryTypeBits, wish), &import,
                     out);
}

uint64_t VulkanDevice::address_of(const VulkanBuffer& buffer) const {
  auto ask = tagged<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  ask.buffer = buffer.buffer;
  return vk.vkGetBufferDeviceAddress(handle, &ask);
}

Status VulkanDevice::allocate(uint64_t bytes, Memory memory, Buffer* out) {
  GRETA_TRY(usable());
  GRETA_TRY(check_allocation(physical.info, bytes));
  // A driver that runs on the host's processor would promise pages that the system does not have.
  if (physical.info.cpu_type && bytes > memory_available_bytes())
    return fail(Code::Memory, "cannot allocate %llu bytes: %s are available", Number(bytes),
                SizeText(memory_available_bytes()).text);
  auto made = std::make_unique<VulkanBuffer>();
  void* mapped = nullptr;
  const Status status = allocate_memory(round_up(bytes, kBufferAlignment), memory, made.get(), &mapped);
  if (!status.ok()) {
    destroy_buffer(*made);
    return allocation_failed(*this, bytes, memory, status);
  }
  if (made->counted) used_bytes_ += made->bytes;
  *out = {made.get(), address_of(*made), mapped, bytes};
  (void)made.release();
  return {};
}

Status VulkanDevice::import_pages(const void* pages, uint64_t bytes, bool writable, Buffer* out) {
  GRETA_TRY(usable());
  if (!pages || !bytes) return fail(Code::Argument, "import_host: no pages");
  const uint64_t alignment = physical.import_alignment, limit = physical.info.max_allocation_bytes;
  if (!alignment) return fail(Code::Unsupported, "%s cannot read host memory in place", physical.info.name);
  const uint64_t begin = reinterpret_cast<uint64_t>(pages), from = begin / alignment * alignment;
  auto made = std::make_unique<VulkanBuffer>();
  made->read_only = !writable;
  made->first = begin - from;
  made->bytes = round_up(begin + bytes, alignment) - from;
  if (made->bytes > limit)
    return fail(Code::Memory, "cannot import %llu bytes: the largest buffer of %s has %llu bytes",
                Number(bytes), physical.info.name, Number(limit));
  const Status status = import_memory(from, writable, made.get());
  if (!status.ok()) {
    destroy_buffer(*made);
    return within(status, "cannot import %llu bytes", Number(bytes));
  }
  *out = {made.get(), address_of(*made) + made->first, const_cast<void*>(pages), bytes};
  (void)made.release();
  return {};
}

void VulkanDevice::destroy_buffer(VulkanBuffer& buffer) {
  if (out_of_reach() || buffer.adopted) return;
  vk.vkDestroyBuffer(handle, buffer.buffer, nullptr);
  vk.vkFreeMemory(handle, buffer.memory, nullptr);
}

void VulkanDevice::release(Buffer& buffer) {
  auto* state = static_cast<VulkanBuffer*>(buffer.handle);
  if (!state) return;
  destroy_buffer(*state);
  if (state->counted) used_bytes_ -= state->bytes;
  delete state;
  buffer = {};
}

}  // namespace greta
