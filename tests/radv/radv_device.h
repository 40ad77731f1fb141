// A device of RADV that compiles pipelines and says what came out. Nothing is run on it: with
// RADV_FORCE_FAMILY the driver needs no GPU.
#pragma once
#include <string>

#include "backends/vulkan/pipeline_info.h"
#include "radv/compiled.h"

namespace greta::test {

class RadvDevice {
 public:
  RadvDevice() = default;
  ~RadvDevice();
  RadvDevice(const RadvDevice&) = delete;
  RadvDevice& operator=(const RadvDevice&) = delete;

  Status open();
  const VulkanPhysical& physical() const { return physical_; }
  const std::string& family() const { return family_; }  // "navi31"
  const std::string& mesa() const { return mesa_; }      // "25.0.7"

  // By several threads at once. Instructions are counted whose names begin with `wanted`, none if it is
  // empty.
  Status compile(const KernelCode& code, const std::string& wanted, Compiled* out) const;

 private:
  Status create_device();
  Status create_pipeline(const KernelCode& code, VkPipelineCreateFlags capture, VkPipeline* out) const;
  Status read_statistics(const VkPipelineExecutableInfoKHR& executable, Compiled* out) const;
  Status read_assembly(const VkPipelineExecutableInfoKHR& executable, std::string* out) const;

  VulkanInstance instance_;
  VulkanPhysical physical_;
  VulkanFunctions vk_;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics_ = nullptr;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR representations_ = nullptr;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::string family_, mesa_;
};

}  // namespace greta::test
