#include "radv/radv_device.h"

#include <algorithm>
#include <cstring>

namespace greta::test {

// What lies between two texts; empty if they are not there.
static std::string between(const std::string& text, const char* before, const char* end_characters) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const size_t from = at + strlen(before);
  return text.substr(from, text.find_first_of(end_characters, from) - from);
}

Status RadvDevice::open() {
  GRETA_TRY(instance_.open("libvulkan.so.1"));
  if (instance_.devices().empty()) return fail(Code::Unsupported, "the Vulkan drivers have no device");
  const Status status = inspect(instance_, instance_.devices()[0], ~0u, &physical_);
  // Without a GPU there is no memory; nothing else may be missing.
  if (!status.ok() && !std::string_view(error_text()).ends_with("lacks device-local memory"))
    return within(status, "%s", physical_.info.name);
  family_ = between(physical_.info.name, "(RADV ", ")");
  std::transform(family_.begin(), family_.end(), family_.begin(), [](unsigned char c) { return tolower(c); });
  mesa_ = between(physical_.info.driver, "Mesa ", " -~+(");
  if (family_.empty() || mesa_.empty())
    return fail(Code::Unsupported, "%s (%s) is no device of RADV", physical_.info.name,
                physical_.info.driver);
  return within(create_device(), "%s", physical_.info.name);
}

Status RadvDevice::create_device() {
  FeatureChain features(physical_);
  enable_features(instance_, physical_, &features);
  std::vector<const char*> extensions = {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME};
  if (physical_.has_matrix) extensions.push_back(kCooperativeMatrixExtension);
  const float priority = 1;
  auto queue = tagged<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = tagged<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.core);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkResult result = instance_.vkCreateDevice(physical_.handle, &info, nullptr, &handle_);
  if (result != VK_SUCCESS) return vulkan_failure(result, "vkCreateDevice");
  GRETA_TRY(vk_.load(instance_, handle_));
#define FIND(member, name) \
  member = reinterpret_cast<PFN_##name>(instance_.vkGetDeviceProcAddr(handle_, #name))
  FIND(statistics_, vkGetPipelineExecutableStatisticsKHR);
  FIND(representations_, vkGetPipelineExecutableInternalRepresentationsKHR);
#undef FIND
  if (!statistics_ || !representations_)
    return fail(Code::Unsupported, "no %s", VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);

  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kMaxBlockBytes};
  auto block = tagged<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  block.pushConstantRangeCount = 1;
  block.pPushConstantRanges = &range;
  result = vk_.vkCreatePipelineLayout(handle_, &block, nullptr, &layout_);
  return result == VK_SUCCESS ? Status{} : vulkan_failure(result, "vkCreatePipelineLayout");
}

RadvDevice::~RadvDevice() {
  if (layout_) vk_.vkDestroyPipelineLayout(handle_, layout_, nullptr);
  if (handle_ && vk_.vkDestroyDevice) vk_.vkDestroyDevice(handle_, nullptr);
}

Status RadvDevice::create_pipeline(const KernelCode& code, VkPipelineCreateFlags capture,
                                   VkPipeline* out) const {
  std::vector<uint8_t> spirv;
  GRETA_TRY(within(unpack(code.code, &spirv), "%s", code.name));
  auto shader = tagged<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  shader.codeSize = spirv.size();
  shader.pCode = reinterpret_cast<const uint32_t*>(spirv.data());
  PipelineInfo request(physical_, code);
  VkResult result = vk_.vkCreateShaderModule(handle_, &shader, nullptr, &request.info.stage.module);
  if (result != VK_SUCCESS) return vulkan_failure(result, "vkCreateShaderModule");
  request.info.layout = layout_;
  request.info.flags = capture;
  result = vk_.vkCreateComputePipelines(handle_, VK_NULL_HANDLE, 1, &request.info, nullptr, out);
  vk_.vkDestroyShaderModule(handle_, request.info.stage.module, nullptr);
  return result == VK_SUCCESS ? Status{} : vulkan_failure(result, "vkCreateComputePipelines");
}

Status RadvDevice::read_statistics(const VkPipelineExecutableInfoKHR& executable, Compiled* out) const {
  uint32_t count = 0;
  statistics_(handle_, &executable, &count, nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> list(
      count, tagged<VkPipelineExecutableStatisticKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR));
  statistics_(handle_, &executable, &count, list.data());
  const struct {
    const char* name;
    uint32_t* value;
  } wanted[] = {{"VGPRs", &out->vgprs},
                {"SGPRs", &out->sgprs},
                {"Spilled VGPRs", &out->spilled_vgprs},
                {"Spilled SGPRs", &out->spilled_sgprs},
                {"Scratch size", &out->scratch_bytes},
                {"LDS size", &out->shared_bytes},
                {"Code size", &out->code_bytes},
                {"Instructions", &out->instructions}};
  for (const auto& [name, value] : wanted) {
    const auto at =
        std::find_if(list.begin(), list.end(), [&](const auto& s) { return !strcmp(s.name, name); });
    if (at == list.end())
      return fail(Code::Unsupported, "Mesa %s has no statistic '%s'", mesa_.c_str(), name);
    *value = uint32_t(at->value.u64);
  }
  return {};
}

Status RadvDevice::read_assembly(const VkPipelineExecutableInfoKHR& executable, std::string* out) const {
  uint32_t count = 0;
  representations_(handle_, &executable, &count, nullptr);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> list(
      count, tagged<VkPipelineExecutableInternalRepresentationKHR>(
                 VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR));
  representations_(handle_, &executable, &count, list.data());
  const auto at =
      std::find_if(list.begin(), list.end(), [](const auto& r) { return !strcmp(r.name, "Assembly"); });
  if (at == list.end()) return fail(Code::Unsupported, "Mesa %s shows no machine code", mesa_.c_str());
  std::vector<std::string> texts(count);  // all are written, or none
  for (uint32_t i = 0; i < count; ++i) {
    texts[i].resize(list[i].dataSize);
    list[i].pData = texts[i].data();
  }
  const VkResult result = representations_(handle_, &executable, &count, list.data());
  if (result != VK_SUCCESS)
    return vulkan_failure(result, "vkGetPipelineExecutableInternalRepresentationsKHR");
  *out = std::move(texts[at - list.begin()]);
  return {};
}

Status RadvDevice::compile(const KernelCode& code, const std::string& wanted, Compiled* out) const {
  *out = {};
  out->lanes = pipeline_group(physical_, code).lanes;
  VkPipelineCreateFlags capture = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  if (!wanted.empty()) capture |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  VkPipeline pipeline = VK_NULL_HANDLE;
  GRETA_TRY(create_pipeline(code, capture, &pipeline));
  auto executable = tagged<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
  executable.pipeline = pipeline;  // a compute pipeline has one, of index 0
  Status status = read_statistics(executable, out);
  std::string text;
  if (status.ok() && !wanted.empty()) status = read_assembly(executable, &text);
  for (size_t at = text.find(wanted); at < text.size(); at = text.find(wanted, at + 1)) ++out->wanted;
  vk_.vkDestroyPipeline(handle_, pipeline, nullptr);
  return status;
}

}  // namespace greta::test
