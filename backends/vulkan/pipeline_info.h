// The request to the driver for a kernel's pipeline: its code with its constants.
#pragma once
#include "backends/vulkan/physical.h"

namespace greta {

// Threads of a group, and lanes of its subgroups.
struct PipelineGroup {
  uint32_t threads, lanes;
};

PipelineGroup pipeline_group(const VulkanPhysical& physical, const KernelCode& code);

// `info` points into this object. The caller adds `stage.module` and `layout`.
class PipelineInfo {
 public:
  PipelineInfo(const VulkanPhysical& physical, const KernelCode& code);
  PipelineInfo(const PipelineInfo&) = delete;
  PipelineInfo& operator=(const PipelineInfo&) = delete;

  VkComputePipelineCreateInfo info;

 private:
  void add(uint32_t id, uint32_t value);

  std::vector<VkSpecializationMapEntry> entries_;
  std::vector<uint32_t> values_;
  VkSpecializationInfo specialization_;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo width_;
};

}  // namespace greta
