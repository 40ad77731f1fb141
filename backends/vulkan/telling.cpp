// What the driver tells of its clock and of the machine code that it makes, for profiles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/vulkan/vulkan.h"

namespace greta {

namespace {

// What a person who works on a kernel looks at; drivers have names of their own.
constexpr const char* kTold[] = {"egister", "GPR", "pill", "tack", "cratch", "Local Memory"};

std::string text_of(const VkPipelineExecutableStatisticKHR& statistic) {
  const auto is_in = [&](const char* word) { return strstr(statistic.name, word) != nullptr; };
  if (std::none_of(std::begin(kTold), std::end(kTold), is_in)) return "";
  const bool whole = statistic.format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR ||
                     statistic.format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR;
  // NVIDIA's driver tells 2^36 bytes of local memory for kernels that have none.
  if (!whole || statistic.value.u64 > ~0u) return "";
  return std::string(statistic.name, strnlen(statistic.name, sizeof statistic.name)) + " " +
         std::to_string(statistic.value.u64);
}

}  // namespace

Status VulkanDevice::describe_pipeline(VkPipeline pipeline, std::string* out) {
  const auto properties = reinterpret_cast<PFN_vkGetPipelineExecutablePropertiesKHR>(
      instance_->vkGetDeviceProcAddr(handle, "vkGetPipelineExecutablePropertiesKHR"));
  const auto statistics = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
      instance_->vkGetDeviceProcAddr(handle, "vkGetPipelineExecutableStatisticsKHR"));
  if (!properties || !statistics) return {};
  auto of = tagged<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  of.pipeline = pipeline;
  uint32_t executables = 0;
  GRETA_TRY(result(properties(handle, &of, &executables, nullptr), "vkGetPipelineExecutablePropertiesKHR"));
  for (uint32_t i = 0; i < executables; ++i) {
    auto info = tagged<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
    info.pipeline = pipeline;
    info.executableIndex = i;
    uint32_t count = 0;
    GRETA_TRY(result(statistics(handle, &info, &count, nullptr), "vkGetPipelineExecutableStatisticsKHR"));
    std::vector<VkPipelineExecutableStatisticKHR> list(
        count, tagged<VkPipelineExecutableStatisticKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR));
    GRETA_TRY(result(statistics(handle, &info, &count, list.data()), "vkGetPipelineExecutableStatisticsKHR"));
    for (const VkPipelineExecutableStatisticKHR& statistic : list)
      if (const std::string text = text_of(statistic); !text.empty())
        *out += (out->empty() ? "" : ", ") + text;
  }
  return {};
}

// The pipeline is made anew, since drivers keep these numbers only of one that is made for it.
Status VulkanDevice::describe_code(const KernelCode& code, std::string* out) {
  out->clear();
  GRETA_TRY(usable());
  if (!physical.has_statistics) return Device::describe_code(code, out);
  VkPipeline pipeline = VK_NULL_HANDLE;
  GRETA_TRY(create_pipeline(code, VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, &pipeline));
  const Status status = describe_pipeline(pipeline, out);
  vk.vkDestroyPipeline(handle, pipeline, nullptr);
  GRETA_TRY(status);
  return out->empty() ? Device::describe_code(code, out) : Status{};
}

// Both clocks are read at one moment, and the event lies as far before it as the device's clock says.
Status VulkanDevice::host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) {
  const auto* given = static_cast<const VulkanEvent*>(event.handle);
  GRETA_TRY(usable());
  if (!given || !given->query || !physical.has_common_clock) return Device::host_ns(event, out, error_ns);
  const auto read = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
      instance_->vkGetDeviceProcAddr(handle, "vkGetCalibratedTimestampsEXT"));
  if (!read) return Device::host_ns(event, out, error_ns);
  uint64_t then = 0, now[2] = {}, apart = 0;
  GRETA_TRY(ticks(*given, "first", &then));
  VkCalibratedTimestampInfoEXT clocks[] = {
      tagged<VkCalibratedTimestampInfoEXT>(VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT),
      tagged<VkCalibratedTimestampInfoEXT>(VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT)};
  clocks[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  clocks[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;  // now_ns()
  GRETA_TRY(result(read(handle, 2, clocks, now, &apart), "vkGetCalibratedTimestampsEXT"));
  const uint64_t ago = (now[0] - then) & ticks_mask();
  const auto ago_ns = uint64_t(std::llround((long double)ago * physical.limits.timestampPeriod));
  if (ago_ns > now[1]) return Device::host_ns(event, out, error_ns);  // a clock has jumped
  *out = now[1] - ago_ns;
  *error_ns = apart;
  return {};
}

}  // namespace greta
