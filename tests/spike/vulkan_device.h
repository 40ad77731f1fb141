// A Vulkan device that runs one kernel at a time: enough for the spike, not a backend. The block
// goes into push constants; buffers are known by address alone.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <memory>
#include <vector>

#include "spike/spike_device.h"

namespace greta {

struct VulkanSymbols {
  DynamicLibrary library;
#define NEED(name) PFN_##name name = nullptr;
#include "spike/vulkan_symbols.def"
#undef NEED
  Status load();
};

class VulkanInstance {
 public:
  ~VulkanInstance();
  Status open();  // Unsupported without libvulkan or an instance of it
  const VulkanSymbols& symbols() const { return symbols_; }
  const std::vector<VkPhysicalDevice>& devices() const { return devices_; }

 private:
  VulkanSymbols symbols_;
  VkInstance instance_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> devices_;
};

class VulkanSpikeDevice : public SpikeDevice {
 public:
  VulkanSpikeDevice(const VulkanInstance& instance, VkPhysicalDevice physical);
  ~VulkanSpikeDevice() override;
  Status open();  // Unsupported if it lacks a feature that the kernels need
  const char* name() const { return properties_.deviceName; }

  Status allocate(uint64_t bytes, uint64_t* address) override;
  Status write(uint64_t address, const void* from, uint64_t bytes) override;
  Status read(uint64_t address, void* to, uint64_t bytes) override;
  Status run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) override;

 private:
  struct Allocation {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t address, bytes;
    uint8_t* mapped;
  };
  Status find(uint64_t address, uint64_t bytes, uint8_t** mapped);
  Status create_pipeline(const KernelCode& code, uint32_t block_bytes);
  Status submit(uint32_t groups, std::span<const uint8_t> block);
  void destroy_pipeline();

  const VulkanSymbols& vk_;
  VkPhysicalDevice physical_;
  VkPhysicalDeviceProperties properties_ = {};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  uint32_t family_ = 0;
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  std::vector<Allocation> allocations_;
};

}  // namespace greta
