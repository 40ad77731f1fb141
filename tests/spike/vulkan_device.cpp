#include "spike/vulkan_device.h"

#include <cstring>

namespace greta {

#define VK_TRY(call)                                                                          \
  do {                                                                                        \
    const VkResult result = (call);                                                           \
    if (result != VK_SUCCESS) return fail(Code::Device, "%s: VkResult %d", #call, int(result)); \
  } while (0)

template <class Info>
static Info tagged(VkStructureType type) {
  Info info = {};
  info.sType = type;
  return info;
}

Status VulkanSymbols::load() {
  GRETA_TRY(library.open("libvulkan.so.1"));
#define NEED(name)                                          \
  name = reinterpret_cast<PFN_##name>(library.find(#name)); \
  if (!name) return fail(Code::Unsupported, "libvulkan.so.1 has no %s", #name);
#include "spike/vulkan_symbols.def"
#undef NEED
  return {};
}

Status VulkanInstance::open() {
  GRETA_TRY(symbols_.load());
  auto application = tagged<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.apiVersion = VK_API_VERSION_1_3;
  auto info = tagged<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  const VkResult result = symbols_.vkCreateInstance(&info, nullptr, &instance_);
  if (result != VK_SUCCESS) return fail(Code::Unsupported, "vkCreateInstance: VkResult %d", int(result));
  uint32_t count = 0;
  VK_TRY(symbols_.vkEnumeratePhysicalDevices(instance_, &count, nullptr));
  devices_.resize(count);
  VK_TRY(symbols_.vkEnumeratePhysicalDevices(instance_, &count, devices_.data()));
  return {};
}

VulkanInstance::~VulkanInstance() {
  if (instance_) symbols_.vkDestroyInstance(instance_, nullptr);
}

VulkanSpikeDevice::VulkanSpikeDevice(const VulkanInstance& instance, VkPhysicalDevice physical)
    : vk_(instance.symbols()), physical_(physical) {
  vk_.vkGetPhysicalDeviceProperties(physical, &properties_);
}

VulkanSpikeDevice::~VulkanSpikeDevice() {
  if (!device_) return;
  destroy_pipeline();
  for (const Allocation& allocation : allocations_) {
    vk_.vkDestroyBuffer(device_, allocation.buffer, nullptr);
    vk_.vkFreeMemory(device_, allocation.memory, nullptr);
  }
  if (pool_) vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

Status VulkanSpikeDevice::open() {
  if (properties_.apiVersion < VK_API_VERSION_1_3)
    return fail(Code::Unsupported, "%s: older than Vulkan 1.3", name());
  auto features12 =
      tagged<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  auto features = tagged<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  features.pNext = &features12;
  vk_.vkGetPhysicalDeviceFeatures2(physical_, &features);
  if (!features12.bufferDeviceAddress || !features12.scalarBlockLayout || !features12.shaderInt8)
    return fail(Code::Unsupported,
                "%s: bufferDeviceAddress %u, scalarBlockLayout %u, shaderInt8 %u; all are needed", name(),
                features12.bufferDeviceAddress, features12.scalarBlockLayout, features12.shaderInt8);
  uint32_t count = 0;
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  while (family_ < count && !(families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family_;
  if (family_ == count) return fail(Code::Unsupported, "%s: no compute queue", name());

  auto wanted =
      tagged<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  wanted.bufferDeviceAddress = wanted.scalarBlockLayout = wanted.shaderInt8 = VK_TRUE;
  const float priority = 1;
  auto queue = tagged<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = tagged<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &wanted;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  VK_TRY(vk_.vkCreateDevice(physical_, &info, nullptr, &device_));
  vk_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  auto pool = tagged<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = family_;
  VK_TRY(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_));
  return {};
}

Status VulkanSpikeDevice::allocate(uint64_t bytes, uint64_t* address) {
  Allocation made = {};
  auto buffer = tagged<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer.size = made.bytes = bytes;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  VK_TRY(vk_.vkCreateBuffer(device_, &buffer, nullptr, &made.buffer));
  allocations_.push_back(made);
  Allocation& kept = allocations_.back();

  VkMemoryRequirements needs;
  vk_.vkGetBufferMemoryRequirements(device_, kept.buffer, &needs);
  VkPhysicalDeviceMemoryProperties memory;
  vk_.vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint32_t type = 0;
  while (type < memory.memoryTypeCount &&
         (!(needs.memoryTypeBits >> type & 1) || (memory.memoryTypes[type].propertyFlags & kHost) != kHost))
    ++type;
  if (type == memory.memoryTypeCount) return fail(Code::Unsupported, "%s: no host-visible memory", name());
  auto flags = tagged<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto info = tagged<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.pNext = &flags;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = type;
  VK_TRY(vk_.vkAllocateMemory(device_, &info, nullptr, &kept.memory));
  VK_TRY(vk_.vkBindBufferMemory(device_, kept.buffer, kept.memory, 0));
  VK_TRY(vk_.vkMapMemory(device_, kept.memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&kept.mapped)));
  auto ask = tagged<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  ask.buffer = kept.buffer;
  *address = kept.address = vk_.vkGetBufferDeviceAddress(device_, &ask);
  return {};
}

Status VulkanSpikeDevice::find(uint64_t address, uint64_t bytes, uint8_t** mapped) {
  for (const Allocation& allocation : allocations_) {
    if (address < allocation.address || address - allocation.address > allocation.bytes) continue;
    if (bytes > allocation.bytes - (address - allocation.address)) continue;
    *mapped = allocation.mapped + (address - allocation.address);
    return {};
  }
  return fail(Code::Argument, "%llu bytes at %llx lie in no buffer", (unsigned long long)bytes,
              (unsigned long long)address);
}

Status VulkanSpikeDevice::write(uint64_t address, const void* from, uint64_t bytes) {
  uint8_t* mapped = nullptr;
  GRETA_TRY(find(address, bytes, &mapped));
  std::memcpy(mapped, from, bytes);
  return {};
}

Status VulkanSpikeDevice::read(uint64_t address, void* to, uint64_t bytes) {
  uint8_t* mapped = nullptr;
  GRETA_TRY(find(address, bytes, &mapped));
  std::memcpy(to, mapped, bytes);
  return {};
}

Status VulkanSpikeDevice::create_pipeline(const KernelCode& code, uint32_t block_bytes) {
  auto shader = tagged<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  shader.codeSize = code.code.size();
  shader.pCode = reinterpret_cast<const uint32_t*>(code.code.data());
  VK_TRY(vk_.vkCreateShaderModule(device_, &shader, nullptr, &shader_));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, block_bytes};
  auto layout = tagged<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  VK_TRY(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_));

  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t id = 0; id < code.constants.size(); ++id) entries.push_back({id, id * 4, 4});
  const VkSpecializationInfo constants = {uint32_t(entries.size()), entries.data(),
                                          code.constants.size_bytes(), code.constants.data()};
  auto info = tagged<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader_;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout_;
  VK_TRY(vk_.vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_));
  return {};
}

void VulkanSpikeDevice::destroy_pipeline() {
  if (pipeline_) vk_.vkDestroyPipeline(device_, pipeline_, nullptr);
  if (layout_) vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  if (shader_) vk_.vkDestroyShaderModule(device_, shader_, nullptr);
  pipeline_ = VK_NULL_HANDLE, layout_ = VK_NULL_HANDLE, shader_ = VK_NULL_HANDLE;
}

Status VulkanSpikeDevice::submit(uint32_t groups, std::span<const uint8_t> block) {
  auto allocate = tagged<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  allocate.commandPool = pool_;
  allocate.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VK_TRY(vk_.vkAllocateCommandBuffers(device_, &allocate, &commands));
  auto begin = tagged<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VK_TRY(vk_.vkBeginCommandBuffer(commands, &begin));
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, uint32_t(block.size()),
                         block.data());
  vk_.vkCmdDispatch(commands, groups, 1, 1);
  auto to_host = tagged<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  to_host.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk_.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                           &to_host, 0, nullptr, 0, nullptr);
  VK_TRY(vk_.vkEndCommandBuffer(commands));
  auto submit = tagged<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  VK_TRY(vk_.vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE));
  VK_TRY(vk_.vkQueueWaitIdle(queue_));
  return {};
}

Status VulkanSpikeDevice::run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) {
  destroy_pipeline();
  GRETA_TRY(create_pipeline(code, uint32_t(block.size())));
  return submit(groups, block);
}

}  // namespace greta
