#include "backends/vulkan/pipeline_info.h"

#include <algorithm>

namespace greta {

// The ids of specialization constants, the same as in kernels/vulkan/device.h.
constexpr uint32_t kThreadsId = 0, kLanesId = 1, kFirstFieldId = 2, kMatrixId = 100, kChainedId = 103;

// The device's subgroup size, or the nearest one that this many threads fill and for which a group has room.
static uint32_t lanes_for(const VulkanPhysical& physical, uint32_t threads) {
  uint32_t lanes = physical.lanes;
  if (!physical.lanes_settable) return lanes;
  while (lanes > threads && lanes > physical.info.wave_min) lanes /= 2;
  while (uint64_t(lanes) * physical.subgroups_max < threads && lanes < physical.info.wave_max) lanes *= 2;
  return lanes;
}

PipelineGroup pipeline_group(const VulkanPhysical& physical, const KernelCode& code) {
  const uint32_t threads = code.constants.empty() ? code.group_size[0] : code.constants[0];
  const uint32_t lanes = lanes_for(physical, threads), wanted = code.subgroups * lanes;
  // With fewer threads, each would hold more of a tile than fits into registers.
  const bool enough = wanted && wanted >= threads / 2;
  return {enough ? std::min(wanted, threads) : threads, lanes};
}

void PipelineInfo::add(uint32_t id, uint32_t value) {
  entries_.push_back({id, uint32_t(values_.size() * sizeof value), sizeof value});
  values_.push_back(value);
}

PipelineInfo::PipelineInfo(const VulkanPhysical& physical, const KernelCode& code)
    : info(tagged<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO)),
      width_(tagged<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
          VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO)) {
  const PipelineGroup group = pipeline_group(physical, code);
  add(kThreadsId, group.threads);
  add(kLanesId, group.lanes);
  for (uint32_t i = 1; i < code.constants.size(); ++i) add(kFirstFieldId + i - 1, code.constants[i]);
  for (uint32_t i = 0; i < 3; ++i) add(kMatrixId + i, physical.matrix[i]);
  add(kChainedId, physical.info.features & kVulkanChain ? 1 : 0);
  specialization_ = {uint32_t(entries_.size()), entries_.data(), values_.size() * sizeof(uint32_t),
                     values_.data()};

  width_.requiredSubgroupSize = group.lanes;
  // A size may be required where a group has room for its subgroups. Lavapipe with 8 lanes, which are all
  // that it has, allows 32 subgroups, and runs 64.
  const bool has_room = uint64_t(group.lanes) * physical.subgroups_max >= group.threads;
  info.stage =
      tagged<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                              physical.lanes_settable && has_room ? &width_ : nullptr);
  if (group.threads % group.lanes == 0)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization_;
}

}  // namespace greta
