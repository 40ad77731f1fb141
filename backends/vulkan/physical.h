// A physical device of the loader's list: what it is, and whether it can be used.
#pragma once
#include "backends/vulkan/loader.h"

namespace greta {

// Bits of DeviceInfo::features: what a kernel row may need beyond what every usable device has.
enum VulkanFeature : uint32_t {
  kVulkanIntDot = 1,           // dot products of packed int8
  kVulkanCoopMatrix = 2,       // VK_KHR_cooperative_matrix: f16 x f16 -> f32 by a subgroup
  kVulkanCoopMatrixHalf = 4,   // f16 x f16 -> f16 of the same shape as well, with 16 rows
  kVulkanChain = 8,            // launches may wait for each other (backends/vulkan/chain.h)
  kVulkanCoopMatrixMany = 16,  // a subgroup has registers for 16 matrices of sums and 8 of operands
};

struct VulkanPhysical;

// The structs by which features are queried and enabled, linked in this order.
struct FeatureChain {
  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceVulkan13Features v13;
  // Linked only if the device has their extensions.
  CooperativeMatrixFeatures matrix;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;

  explicit FeatureChain(const VulkanPhysical& physical);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;
};

constexpr VkBufferUsageFlags kBufferUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
constexpr uint64_t kBufferAlignment = 64;  // of a buffer's size: a wide load of the last values stays inside

constexpr auto kHostPages = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

struct VulkanPhysical {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  VkPhysicalDeviceLimits limits = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  uint8_t cache_uuid[VK_UUID_SIZE] = {}, driver_uuid[VK_UUID_SIZE] = {};
  uint32_t vendor_id = 0, device_id = 0, driver_version = 0;

  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;  // 0: the queue has no clock
  uint32_t lanes = 1;           // the subgroup size that kernels are compiled for
  bool lanes_settable = false;  // a pipeline may choose its subgroup size; else all have `lanes`
  uint32_t subgroups_max = 1;   // of a group
  uint32_t matrix[3] = {};      // M, N, K of the cooperative matrix; 0 if there is none
  bool has_half_sums = false;   // a cooperative matrix of that shape has sums in f16 too
  bool has_matrix = false;      // VK_KHR_cooperative_matrix
  bool has_budget = false;      // VK_EXT_memory_budget
  bool has_statistics = false;  // VK_KHR_pipeline_executable_properties tells of registers
  // VK_EXT_calibrated_timestamps reads the device's clock and CLOCK_MONOTONIC at one moment.
  bool has_common_clock = false;
  bool has_memory_fd = false, has_semaphore_fd = false;  // VK_KHR_external_{memory,semaphore}_fd
  // The driver cannot be loaded more than some twenty times in a process: each time takes thread-local
  // storage that the C library does not give back. Seen with NVIDIA's 580.159.
  bool stays_loaded = false;
  // The alignment in bytes of host memory that is imported by VK_EXT_external_memory_host. 0: the driver
  // imports none.
  uint64_t import_alignment = 0;
};

// Fails with Unsupported and every reason. What is known is filled in all the same.
Status inspect(const VulkanInstance& instance, VkPhysicalDevice handle, uint32_t features_mask,
               VulkanPhysical* out);

// What the message of a lost device advises behind its reason: "" or words that begin with "; ". `release` is
// the kernel's, such as "7.0.3-arch1".
const char* advice_when_lost(uint32_t vendor_id, const char* release);

// Sets the features that features.def lists and the device has, for creating the device.
void enable_features(const VulkanInstance& instance, const VulkanPhysical& physical, FeatureChain* out);

}  // namespace greta
