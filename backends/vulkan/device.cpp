// The Vulkan device: opening and closing, events, and its row among the backends.
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>

#include "backends/vulkan/vulkan.h"

namespace greta {

constexpr char kLoader[] = "libvulkan.so.1";
constexpr uint64_t kWaitLimitMs = 60'000;

Status VulkanDevice::usable() const {
  GRETA_TRY(process_.check());
  const char* const by = lost_by_;
  if (!by) return {};
  utsname kernel = {};
  (void)uname(&kernel);
  return fail(Code::Device, "%s was lost (%s: %s): close it and open it again%s", physical.info.name, by,
              greta::describe(VkResult(int(lost_with_))).text,
              advice_when_lost(physical.vendor_id, kernel.release));
}

void VulkanDevice::lose(const char* by, VkResult with) {
  const char* nobody = nullptr;
  if (lost_by_.compare_exchange_strong(nobody, by)) lost_with_ = with;
}

void VulkanDevice::lose_by_hanging() {
  lose("a wait without end", VK_TIMEOUT);
  hangs_ = true;
}

Status VulkanDevice::result(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return {};
  const Status status = vulkan_failure(result, what);
  if (result == VK_ERROR_DEVICE_LOST) lose(what, result);
  return status;
}

static Status find_physical(const VulkanInstance& instance, uint32_t index, VkPhysicalDevice* out) {
  const size_t count = instance.devices().size();
  if (!count)
    return fail(Code::Unsupported, "the Vulkan drivers of this machine find no device: %s", kNoDeviceAdvice);
  if (index >= count)
    return fail(Code::Unsupported, "there %s %zu Vulkan device%s, numbered from 0", count == 1 ? "is" : "are",
                count, count == 1 ? "" : "s");
  *out = instance.devices()[index];
  return {};
}

Status VulkanDevice::inspect_physical(uint32_t index, const DeviceOptions& options) {
  log_ = options.log;
  VkPhysicalDevice chosen = VK_NULL_HANDLE;
  GRETA_TRY(find_physical(*instance_, index, &chosen));
  GRETA_TRY(within(inspect(*instance_, chosen, options.features_mask, &physical), "%s", physical.info.name));
  // A processor may take its time.
  const uint64_t usual_ms = physical.info.cpu_type ? ~0u : kWaitLimitMs;
  wait_limit_ns_ = (options.wait_limit_ms ? options.wait_limit_ms : usual_ms) * 1'000'000;
  system_root_ = options.system.root;
  return {};
}

Status VulkanDevice::open(std::unique_ptr<VulkanInstance> instance, uint32_t index,
                          const DeviceOptions& options) {
  instance_ = std::move(instance);
  GRETA_TRY(inspect_physical(index, options));
  GRETA_TRY(within(create_device(), "%s", physical.info.name));
  return prove(options);
}

// What a device is asked before it is used.
Status VulkanDevice::prove(const DeviceOptions& options) {
  GRETA_TRY(open_pipeline_cache(options));
  GRETA_TRY(within(prove_memory(*this), "%s does not work", physical.info.name));
  GRETA_TRY(within(prove_chain(), "%s", physical.info.name));
  const bool unified = physical.info.unified_memory;  // else weights are faster in its own memory
  physical.info.imports_host = physical.import_alignment && unified && reads_file_pages(*this);
  physical.info.shares_host = physical.import_alignment && shares_pages(*this);
  physical.info.waits_for_host = true;
  if (physical.import_alignment && unified && !physical.info.imports_host)
    log_(LogLevel::Debug, "%s takes no pages of a mapped file: weights are copied", physical.info.name);
  return usable();
}

Status VulkanDevice::create_device() {
  FeatureChain features(physical);
  enable_features(*instance_, physical, &features);
  std::vector<const char*> extensions;
  if (physical.has_matrix) extensions.push_back(kCooperativeMatrixExtension);
  if (physical.has_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (physical.has_statistics) extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  if (physical.has_common_clock) extensions.push_back(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  if (physical.import_alignment) extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (physical.has_memory_fd) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (physical.has_semaphore_fd) extensions.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  const float priority = 1;
  auto queues = tagged<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queues.queueFamilyIndex = physical.queue_family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  auto info = tagged<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.core);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  info.enabledExtensionCount = uint32_t(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice made = VK_NULL_HANDLE;
  GRETA_TRY(result(instance_->vkCreateDevice(physical.handle, &info, nullptr, &made), "vkCreateDevice"));
  GRETA_TRY(use(made));
  if (physical.stays_loaded)
    for (const char* name : {"libGLX_nvidia.so", "libEGL_nvidia.so"}) keep_loaded(loaded_library(name));
  VkQueue first;
  vk.vkGetDeviceQueue(handle, physical.queue_family, 0, &first);
  queue.set(first);
  return {};
}

Status VulkanDevice::use(VkDevice device) {
  handle = device;
  GRETA_TRY(vk.load(*instance_, handle));
  host_pointer_properties_ = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      instance_->vkGetDeviceProcAddr(handle, "vkGetMemoryHostPointerPropertiesEXT"));
  if (!host_pointer_properties_) physical.import_alignment = 0;
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kMaxBlockBytes};
  auto block = tagged<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  block.pushConstantRangeCount = 1;
  block.pPushConstantRanges = &range;
  return result(vk.vkCreatePipelineLayout(handle, &block, nullptr, &layout), "vkCreatePipelineLayout");
}

VulkanDevice::~VulkanDevice() {
  if (hangs_) (void)instance_.release();  // its device stays as well
  if (!handle || out_of_reach()) return;
  if (stuck_.handle) release(stuck_);
  if (layout) {  // it is made after all functions were found
    try {
      save_pipeline_cache();
    } catch (...) {  // memory ran out or the log callback threw; nothing depends on the file
    }
    vk.vkDestroyPipelineCache(handle, cache_, nullptr);
    for (auto& [key, pipeline] : pipelines_) vk.vkDestroyPipeline(handle, pipeline->pipeline, nullptr);
    vk.vkDestroyPipelineLayout(handle, layout, nullptr);
  }
  if (vk.vkDestroyDevice && !adopted_) vk.vkDestroyDevice(handle, nullptr);
}

Status VulkanDevice::create_stream(Stream** out) {
  GRETA_TRY(usable());
  auto stream = std::make_unique<VulkanStream>(*this);
  GRETA_TRY(stream->open());
  *out = stream.release();
  return {};
}

Status VulkanDevice::create_event(Event* out, bool timed) {
  GRETA_TRY(usable());
  auto event = std::make_unique<VulkanEvent>();
  auto info = tagged<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 1;
  if (timed && physical.timestamp_bits)
    GRETA_TRY(result(vk.vkCreateQueryPool(handle, &info, nullptr, &event->query), "vkCreateQueryPool"));
  out->handle = event.release();
  return {};
}

uint64_t VulkanDevice::ticks_mask() const {
  return physical.timestamp_bits < 64 ? (uint64_t(1) << physical.timestamp_bits) - 1 : ~uint64_t(0);
}

Status VulkanDevice::ticks(const VulkanEvent& event, const char* which, uint64_t* out) {
  const VulkanPoint point = queue.event_point(event);
  if (!point.timeline || !queue.reached(point))
    return fail(Code::Argument, "elapsed_ns: the %s event was not signalled and waited for", which);
  GRETA_TRY(result(vk.vkGetQueryPoolResults(handle, event.query, 0, 1, sizeof *out, out, sizeof *out,
                                            VK_QUERY_RESULT_64_BIT),
                   "vkGetQueryPoolResults"));
  *out &= ticks_mask();
  return {};
}

Status VulkanDevice::elapsed_ns(const Event& from, const Event& to, uint64_t* out) {
  const auto* first = static_cast<const VulkanEvent*>(from.handle);
  const auto* last = static_cast<const VulkanEvent*>(to.handle);
  if (!first || !last) return fail(Code::Argument, "elapsed_ns: an event was not created");
  GRETA_TRY(usable());
  if (!physical.timestamp_bits) return fail(Code::Unsupported, "%s has no clock", physical.info.name);
  if (!first->query || !last->query)
    return fail(Code::Argument, "elapsed_ns: an event was created without a clock");
  uint64_t begin = 0, end = 0;
  GRETA_TRY(ticks(*first, "first", &begin));
  GRETA_TRY(ticks(*last, "second", &end));
  const auto ns = [&](uint64_t at) {
    return uint64_t(std::llround((long double)at * physical.limits.timestampPeriod));
  };
  *out = end > begin ? ns(end) - ns(begin) : 0;
  return {};
}

void VulkanDevice::destroy(Event& event) {
  auto* state = static_cast<VulkanEvent*>(event.handle);
  if (!state) return;
  if (!out_of_reach()) {
    const VulkanPoint point = queue.event_point(*state);
    if (point.timeline && !queue.reached(point)) queue.wait_idle();  // its time is still to be written
    if (state->query) vk.vkDestroyQueryPool(handle, state->query, nullptr);
  }
  delete state;
  event = {};
}

void VulkanDevice::destroy(Graph& graph) {
  auto* state = static_cast<VulkanGraph*>(graph.handle);
  if (!state) return;
  if (!out_of_reach()) queue.wait_idle();
  discard(std::unique_ptr<VulkanGraph>(state));
  graph = {};
}

void VulkanDevice::discard(std::unique_ptr<VulkanGraph> graph) {
  if (!graph) return;
  if (!out_of_reach()) vk.vkDestroyCommandPool(handle, graph->pool, nullptr);
  if (graph->chain) release(graph->chain->memory);
}

static const char* loader_of(const DeviceOptions& options) {
  const char* const library = options.driver_library ? options.driver_library : kLoader;
  options.log(LogLevel::Debug, "opening %s", library);
  return library;
}

static uint32_t count(const DeviceOptions& options) {
  VulkanInstance instance;
  return instance.open(loader_of(options)).ok() ? uint32_t(instance.devices().size()) : 0;
}

static Status describe(uint32_t index, const DeviceOptions& options, DeviceInfo* out) {
  *out = {};
  VulkanInstance instance;
  GRETA_TRY(instance.open(loader_of(options)));
  VkPhysicalDevice chosen = VK_NULL_HANDLE;
  GRETA_TRY(find_physical(instance, index, &chosen));
  VulkanPhysical physical;
  const Status status = inspect(instance, chosen, options.features_mask, &physical);
  *out = physical.info;
  return status;
}

static Status open(uint32_t index, const DeviceOptions& options, Device** out) {
  auto instance = std::make_unique<VulkanInstance>();
  GRETA_TRY(instance->open(loader_of(options)));
  auto device = std::make_unique<VulkanDevice>();
  const Status status = device->open(std::move(instance), index, options);
  if (status.ok()) {
    *out = device.release();
    return {};
  }
  if (!device->lost_by_chains()) return status;
  options.log(LogLevel::Warning,
              "%s was lost by kernels that wait for each other; it is opened again without chains",
              device->info().name);
  device.reset();
  DeviceOptions without = options;
  without.features_mask &= ~uint32_t(kVulkanChain);
  return open(index, without, out);
}

extern const Backend backend_vulkan;
const Backend backend_vulkan = {"vulkan", false, count, describe, open};

}  // namespace greta
