// Kernels are compute pipelines: one for each SPIR-V code and set of constants.
#include <algorithm>
#include <cstring>

#include "backends/vulkan/pipeline_cache.h"
#include "backends/vulkan/pipeline_info.h"
#include "backends/vulkan/vulkan.h"

namespace greta {

namespace {

// The same SPIR-V with the same constants and threads is the same pipeline.
std::string key_of(const KernelCode& code, uint32_t threads) {
  const uint64_t head[] = {checksum(code.code.data(), code.code.size()), code.code.size(), threads};
  std::string key(reinterpret_cast<const char*>(head), sizeof head);
  key.append(reinterpret_cast<const char*>(code.constants.data()), code.constants.size_bytes());
  return key;
}

Status check_group(const VulkanPhysical& physical, const KernelCode& code, uint32_t threads) {
  const VkPhysicalDeviceLimits& limits = physical.limits;
  if (threads && threads <= limits.maxComputeWorkGroupSize[0] &&
      threads <= limits.maxComputeWorkGroupInvocations)
    return {};
  return fail(Code::Unsupported, "%s: groups of %u threads, %s allows 1 to %u", code.name, threads,
              physical.info.name,
              std::min(limits.maxComputeWorkGroupSize[0], limits.maxComputeWorkGroupInvocations));
}

}  // namespace

Status VulkanDevice::create_pipeline(const KernelCode& code, VkPipelineCreateFlags flags, VkPipeline* out) {
  GRETA_TRY(check_group(physical, code, pipeline_group(physical, code).threads));
  std::vector<uint8_t> spirv;
  GRETA_TRY(within(unpack(code.code, &spirv), "%s", code.name));
  auto shader = tagged<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  shader.codeSize = spirv.size();
  shader.pCode = reinterpret_cast<const uint32_t*>(spirv.data());
  VkShaderModule module = VK_NULL_HANDLE;
  GRETA_TRY(result(vk.vkCreateShaderModule(handle, &shader, nullptr, &module), "vkCreateShaderModule"));

  PipelineInfo request(physical, code);
  request.info.stage.module = module;
  request.info.layout = layout;
  request.info.flags = flags;
  const VkResult created = vk.vkCreateComputePipelines(handle, cache_, 1, &request.info, nullptr, out);
  vk.vkDestroyShaderModule(handle, module, nullptr);
  compiled_ = true;
  const Status status = result(created, "vkCreateComputePipelines");
  if (status.code == Code::Device && !lost_by_)
    return fail(Code::Unsupported, "the driver of %s refuses the shader %s (%s): a newer driver may take it",
                physical.info.name, code.name, greta::describe(created).text);
  return status;
}

// If the driver refuses the file's cache, an empty one is made instead.
Status VulkanDevice::open_pipeline_cache(const DeviceOptions& options) {
  std::vector<uint8_t> data;
  if (options.cache_folder && *options.cache_folder) {
    cache_path_ = pipeline_cache_path(options.cache_folder, physical);
    if (!read_pipeline_cache(cache_path_, physical, &data).ok())
      log_(LogLevel::Info, "compiled kernels are made anew: %s", error_text());
    clear_error_text();
  }
  auto info = tagged<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  if (!data.empty() && vk.vkCreatePipelineCache(handle, &info, nullptr, &cache_) == VK_SUCCESS) {
    cached_bytes_ = data.size();
    return {};
  }
  if (!data.empty())
    log_(LogLevel::Info, "compiled kernels are made anew: the driver refuses '%s'", cache_path_.c_str());
  info.initialDataSize = 0;
  return result(vk.vkCreatePipelineCache(handle, &info, nullptr, &cache_), "vkCreatePipelineCache");
}

// Nothing depends on the file, so a failure is only logged.
void VulkanDevice::save_pipeline_cache() {
  if (cache_path_.empty() || !cache_ || !compiled_ || lost_by_) return;
  size_t bytes = 0;
  if (vk.vkGetPipelineCacheData(handle, cache_, &bytes, nullptr) != VK_SUCCESS) return;
  if (bytes == cached_bytes_) return;  // nothing is new since the file was read
  std::vector<uint8_t> data(bytes);
  if (vk.vkGetPipelineCacheData(handle, cache_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);
  if (!write_pipeline_cache(cache_path_, physical, data).ok())
    log_(LogLevel::Warning, "compiled kernels are not kept, so the next start will be as slow: %s",
         error_text());
}

// Compiles without the lock, so that several threads may load at once. Of equal pipelines the first is kept.
Status VulkanDevice::load(const KernelCode& code, Kernel* out) {
  GRETA_TRY(usable());
  if (code.code.empty()) return fail(Code::Unsupported, "%s: the kernel has no code for Vulkan", code.name);
  const uint32_t threads = pipeline_group(physical, code).threads;
  std::string key = key_of(code, threads);
  VulkanPipeline* found = nullptr;
  const auto find = [&] {
    const auto at = pipelines_.find(key);
    if (at != pipelines_.end()) ++(found = at->second.get())->users;
    return found;
  };
  {
    const std::lock_guard<std::mutex> lock(pipelines_mutex_);
    find();
  }
  if (!found) {
    auto made = std::make_unique<VulkanPipeline>();
    GRETA_TRY(create_pipeline(code, 0, &made->pipeline));
    const std::lock_guard<std::mutex> lock(pipelines_mutex_);
    if (find()) {
      vk.vkDestroyPipeline(handle, made->pipeline, nullptr);
    } else {
      made->key = key;
      made->users = 1;
      found = made.get();
      pipelines_.emplace(std::move(key), std::move(made));
    }
  }
  *out = {};
  out->handle = found;
  memcpy(out->group_size, code.group_size, sizeof out->group_size);
  out->group_size[0] = threads;
  out->name = code.name;
  out->chain_field = physical.info.features & kVulkanChain ? code.chain_field : 0;
  return {};
}

void VulkanDevice::unload(Kernel& kernel) {
  auto* pipeline = static_cast<VulkanPipeline*>(kernel.handle);
  kernel = {};
  if (!pipeline || out_of_reach()) return;
  const std::lock_guard<std::mutex> lock(pipelines_mutex_);
  if (--pipeline->users) return;
  vk.vkDestroyPipeline(handle, pipeline->pipeline, nullptr);
  pipelines_.erase(pipelines_.find(pipeline->key));
}

}  // namespace greta
