// A stream records into command buffers and gives them to the queue in batches.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/vulkan/vulkan.h"

namespace greta {

constexpr VkPipelineStageFlags2 kKernels = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags2 kTransfers = VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
constexpr VkPipelineStageFlags2 kWorkStages = kKernels | kTransfers;

Status VulkanStream::open() {
  GRETA_TRY(create_timeline(&timeline_));
  auto pool = tagged<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device_.physical.queue_family;
  return device_.result(device_.vk.vkCreateCommandPool(device_.handle, &pool, nullptr, &pool_),
                        "vkCreateCommandPool");
}

Status VulkanStream::create_timeline(std::shared_ptr<VulkanTimeline>* out) {
  auto made = std::make_shared<VulkanTimeline>(device_);
  made->owner_thread = std::this_thread::get_id();
  auto type = tagged<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  const auto info = tagged<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  GRETA_TRY(device_.result(device_.vk.vkCreateSemaphore(device_.handle, &info, nullptr, &made->semaphore),
                           "vkCreateSemaphore"));
  *out = std::move(made);
  return {};
}

VulkanStream::~VulkanStream() {
  if (device_.out_of_reach()) return;
  (void)let_go(gates_);  // what was submitted ends
  device_.queue.close(*timeline_);
  // What is left was submitted and never waited for, so nobody can be told of a failure.
  if (timeline_->submitted && !device_.queue.wait({timeline_, timeline_->submitted}).ok())
    device_.queue.wait_idle();
  device_.discard(std::move(capture_));
  if (pool_) device_.vk.vkDestroyCommandPool(device_.handle, pool_, nullptr);
}

Status VulkanStream::not_capturing(const char* what) const {
  if (device_.out_of_reach()) return device_.usable();
  if (capture_) return fail(Code::Argument, "%s: not inside a capture", what);
  return {};
}

Status VulkanStream::take_buffer(VkCommandBuffer* out) {
  if (!capture_ && free_.empty()) GRETA_TRY(reclaim());
  if (!capture_ && !free_.empty()) {
    *out = free_.back();
    free_.pop_back();
    return {};
  }
  auto info = tagged<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = capture_ ? capture_->pool : pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  return device_.result(device_.vk.vkAllocateCommandBuffers(device_.handle, &info, out),
                        "vkAllocateCommandBuffers");
}

// Shows the device what the host has written since the submission.
static void heed_host(const VulkanFunctions& vk, VkCommandBuffer commands) {
  auto memory = tagged<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
  memory.srcStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
  memory.srcAccessMask = VK_ACCESS_2_HOST_WRITE_BIT;
  memory.dstStageMask = kWorkStages;
  memory.dstAccessMask = VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT;
  auto info = tagged<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
  info.memoryBarrierCount = 1;
  info.pMemoryBarriers = &memory;
  vk.vkCmdPipelineBarrier2(commands, &info);
}

Status VulkanStream::begin() {
  if (commands_) return {};
  GRETA_TRY(device_.usable());
  VkCommandBuffer taken;
  GRETA_TRY(take_buffer(&taken));
  auto info = tagged<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags =
      capture_ ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  const Status status = device_.result(device_.vk.vkBeginCommandBuffer(taken, &info), "vkBeginCommandBuffer");
  if (!status.ok()) {
    if (!capture_) free_.push_back(taken);
    return status;
  }
  commands_ = taken;
  bound_ = VK_NULL_HANDLE;
  shown_ = false;
  if (!capture_ && std::exchange(heeds_host_, false)) heed_host(device_.vk, commands_);
  return {};
}

static VkAccessFlags2 writes_of(VkPipelineStageFlags2 stages) {
  return (stages & kKernels ? VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT : 0) |
         (stages & kTransfers ? VK_ACCESS_2_TRANSFER_WRITE_BIT : 0);
}

static VkAccessFlags2 accesses_of(VkPipelineStageFlags2 stages) {
  return writes_of(stages) | (stages & kKernels ? VK_ACCESS_2_SHADER_STORAGE_READ_BIT : 0) |
         (stages & kTransfers ? VK_ACCESS_2_TRANSFER_READ_BIT : 0);
}

static void record_barrier(const VulkanFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags2 from,
                           VkPipelineStageFlags2 stages, VkAccessFlags2 access) {
  auto memory = tagged<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
  memory.srcStageMask = from;
  memory.srcAccessMask = writes_of(from);
  memory.dstStageMask = stages;
  memory.dstAccessMask = access;
  auto info = tagged<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
  info.memoryBarrierCount = 1;
  info.pMemoryBarriers = &memory;
  vk.vkCmdPipelineBarrier2(commands, &info);
}

Status VulkanStream::close() {
  if (!commands_) return {};
  const VkCommandBuffer ended = commands_;
  commands_ = VK_NULL_HANDLE;
  if (!capture_) used_.push_back({ended, value_ + 1});
  GRETA_TRY(device_.result(device_.vk.vkEndCommandBuffer(ended), "vkEndCommandBuffer"));
  (capture_ ? capture_->parts : open_.commands).push_back(ended);
  return {};
}

Status VulkanStream::show_host() {
  GRETA_TRY(begin());
  record_barrier(device_.vk, commands_, kWorkStages, VK_PIPELINE_STAGE_2_HOST_BIT,
                 VK_ACCESS_2_HOST_READ_BIT | VK_ACCESS_2_HOST_WRITE_BIT);
  return {};
}

// A batch that the host may wait for ends with a barrier towards the host, so that a wait records nothing.
Status VulkanStream::seal(bool for_host) {
  if (for_host && !shown_ && (commands_ || !open_.commands.empty())) GRETA_TRY(show_host());
  GRETA_TRY(close());
  if (open_.empty()) return {};
  open_.done = {timeline_, ++value_};
  batches_.push_back(std::move(open_));
  open_ = {};
  return {};
}

Status VulkanStream::reclaim() {
  if (used_.empty()) return {};
  uint64_t reached = 0;
  GRETA_TRY(
      device_.result(device_.vk.vkGetSemaphoreCounterValue(device_.handle, timeline_->semaphore, &reached),
                     "vkGetSemaphoreCounterValue"));
  for (; !used_.empty() && used_.front().value <= reached; used_.pop_front())
    free_.push_back(used_.front().commands);
  return {};
}

Status VulkanStream::dispatch(const Kernel& kernel, const uint32_t (&groups)[3],
                              std::span<const uint8_t> block, std::span<const Access>) {
  GRETA_TRY(check_dispatch(kernel, groups, block));
  const uint32_t* limits = device_.physical.limits.maxComputeWorkGroupCount;
  for (uint32_t i = 0; i < 3; ++i)
    if (groups[i] > limits[i])
      return fail(Code::Unsupported, "%s: a grid of %u x %u x %u groups, %s allows %u x %u x %u", kernel.name,
                  groups[0], groups[1], groups[2], device_.physical.info.name, limits[0], limits[1],
                  limits[2]);
  GRETA_TRY(begin());
  const VkPipeline pipeline = static_cast<const VulkanPipeline*>(kernel.handle)->pipeline;
  if (pipeline != bound_)
    device_.vk.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_ = pipeline);
  const uint64_t cell = link(kernel, uint64_t(groups[0]) * groups[1] * groups[2]);
  if (!block.empty()) {
    alignas(16) uint8_t words[kMaxBlockBytes] = {};  // operands behind a block are absent
    memcpy(words, block.data(), block.size());
    if (kernel.chain_field) memcpy(words + kernel.chain_field, &cell, sizeof cell);
    device_.vk.vkCmdPushConstants(commands_, device_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof words,
                                  words);
  }
  order(kKernels);
  device_.vk.vkCmdDispatch(commands_, groups[0], groups[1], groups[2]);
  return {};
}

static VulkanBuffer& state_of(const Slice& slice) {
  return *static_cast<VulkanBuffer*>(slice.buffer->handle);
}

static Status writable(const Slice& to, const char* what) {
  if (state_of(to).read_only) return fail(Code::Argument, "%s: imported memory is read-only", what);
  return {};
}

Status VulkanStream::copy(const Slice& to, const Slice& from) {
  GRETA_TRY(check_copy(to, from));
  GRETA_TRY(writable(to, "copy"));
  GRETA_TRY(begin());
  const VkBufferCopy region = {state_of(from).first + from.offset, to.offset, to.bytes};
  if (to.bytes) order(kTransfers);
  if (to.bytes) device_.vk.vkCmdCopyBuffer(commands_, state_of(from).buffer, state_of(to).buffer, 1, &region);
  return {};
}

Status VulkanStream::fill(const Slice& to, uint32_t word) {
  GRETA_TRY(check_fill(to));
  GRETA_TRY(writable(to, "fill"));
  GRETA_TRY(begin());
  if (to.bytes) order(kTransfers);
  if (to.bytes) device_.vk.vkCmdFillBuffer(commands_, state_of(to).buffer, to.offset, to.bytes, word);
  return {};
}

Status VulkanStream::barrier() {
  GRETA_TRY(device_.usable());
  order_.owed_to_kernels |= order_.since;
  order_.owed_to_transfers |= order_.since;
  order_.since = 0;
  return {};
}

// A barrier is recorded before the first command that it concerns. A barrier between two kernels then names
// only kernels, which costs drivers less.
void VulkanStream::order(VkPipelineStageFlags2 stage) {
  VkPipelineStageFlags2& owed = stage == kKernels ? order_.owed_to_kernels : order_.owed_to_transfers;
  if (owed) record_barrier(device_.vk, commands_, owed, stage, accesses_of(stage));
  owed = 0;
  order_.since |= stage;
}

Status VulkanStream::signal(Event& event) {
  GRETA_TRY(not_capturing("signal"));
  auto* state = static_cast<VulkanEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "signal: the event was not created");
  if (state->query) GRETA_TRY(write_time(*state));
  GRETA_TRY(seal(true));
  device_.queue.set_event(*state, {timeline_, value_});
  return {};
}

// A batch for each of the hundreds of events of a profiled step would cost more than what is measured.
Status VulkanStream::stamp(Event& event) {
  auto* state = static_cast<VulkanEvent*>(event.handle);
  if (!state || !state->query) return signal(event);
  GRETA_TRY(not_capturing("stamp"));
  GRETA_TRY(write_time(*state));
  device_.queue.set_event(*state, {timeline_, value_ + 1});  // of the batch that is open
  return {};
}

Status VulkanStream::write_time(const VulkanEvent& event) {
  GRETA_TRY(begin());
  device_.vk.vkCmdResetQueryPool(commands_, event.query, 0, 1);
  device_.vk.vkCmdWriteTimestamp2(commands_, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, event.query, 0);
  return {};
}

Status VulkanStream::wait_for(const Event& event) {
  GRETA_TRY(not_capturing("wait_for"));
  const auto* state = static_cast<const VulkanEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "wait_for: the event was not created");
  const VulkanPoint point = device_.queue.event_point(*state);
  if (!point.timeline) return {};  // the event was never signalled
  GRETA_TRY(seal(true));
  open_.waits.push_back(point);
  return {};
}

// The gate is a semaphore that the host signals. Its waits are never held back: the value comes from outside
// of the queue.
Status VulkanStream::wait_for_host(uint64_t number) {
  GRETA_TRY(not_capturing("wait_for_host"));
  if (number <= gates_)
    return fail(Code::Argument, "wait_for_host: number %llu comes after %llu", (unsigned long long)number,
                (unsigned long long)gates_);
  GRETA_TRY(device_.usable());
  if (!gate_) {
    GRETA_TRY(create_timeline(&gate_));
    gate_->submitted = ~uint64_t(0);
  }
  GRETA_TRY(seal(true));
  open_.waits.push_back({gate_, gates_ = number});
  heeds_host_ = true;
  return {};
}

Status VulkanStream::let_go(uint64_t number) {
  if (!gate_ || number <= let_go_) return {};
  GRETA_TRY(device_.usable());
  auto info = tagged<VkSemaphoreSignalInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO);
  info.semaphore = gate_->semaphore;
  info.value = number;
  GRETA_TRY(device_.result(device_.vk.vkSignalSemaphore(device_.handle, &info), "vkSignalSemaphore"));
  let_go_ = number;
  return {};
}

Status VulkanStream::begin_capture() {
  GRETA_TRY(not_capturing("begin_capture"));
  GRETA_TRY(device_.usable());
  GRETA_TRY(close());
  auto graph = std::make_unique<VulkanGraph>();
  auto pool = tagged<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = device_.physical.queue_family;
  GRETA_TRY(device_.result(device_.vk.vkCreateCommandPool(device_.handle, &pool, nullptr, &graph->pool),
                           "vkCreateCommandPool"));
  graph->order = order_;
  capture_ = std::move(graph);
  order_ = {0, kWorkStages, kWorkStages};  // a replay is ordered after all that came before it
  open_chain();
  return {};
}

Status VulkanStream::split() { return capture_ ? close() : Status{}; }

Status VulkanStream::end_capture(Graph* out) {
  if (!capture_) return fail(Code::Argument, "end_capture: no capture was begun");
  Status status = show_host();
  if (status.ok()) status = close();
  std::swap(order_, capture_->order);
  if (!status.ok()) {
    device_.discard(std::move(capture_));
    return status;
  }
  out->handle = capture_.release();
  return {};
}

// A barrier that was owed to a stage was recorded by the graph's first command of that stage, if any.
void VulkanStream::order_after(const VulkanOrder& graph) {
  order_.owed_to_kernels = graph.owed_to_kernels ? order_.owed_to_kernels | graph.owed_to_kernels : 0;
  order_.owed_to_transfers = graph.owed_to_transfers ? order_.owed_to_transfers | graph.owed_to_transfers : 0;
  order_.since |= graph.since;
}

Status VulkanStream::replay(const Graph& graph) {
  GRETA_TRY(not_capturing("replay"));
  if (!graph.handle) return fail(Code::Argument, "replay: the graph is empty or was destroyed");
  GRETA_TRY(device_.usable());
  auto* captured = static_cast<VulkanGraph*>(graph.handle);
  if (captured->chain) GRETA_TRY(fill_chain(*captured->chain));
  GRETA_TRY(close());
  const std::vector<VkCommandBuffer>& parts = captured->parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    open_.commands.push_back(parts[i]);
    if (i + 1 == parts.size()) break;
    open_.alone = true;
    GRETA_TRY(seal(false));
  }
  order_after(captured->order);
  shown_ = true;
  return {};
}

Status VulkanStream::submit() {
  GRETA_TRY(not_capturing("submit"));
  GRETA_TRY(device_.usable());
  GRETA_TRY(seal(true));
  return batches_.empty() ? Status{} : device_.queue.submit(batches_);
}

Status VulkanStream::wait() {
  GRETA_TRY(submit());
  if (!value_) return {};
  GRETA_TRY(device_.queue.wait({timeline_, value_}, patience_ns_));
  return reclaim();
}

// Abandoned command buffers are freed with the pool, or when a later batch has reached their value. All later
// work is ordered after all work that may still run.
void VulkanStream::abandon() noexcept {
  if (device_.out_of_reach()) return;
  if (commands_ && !capture_ && device_.vk.vkEndCommandBuffer(commands_) == VK_SUCCESS) {
    try {
      free_.push_back(commands_);
    } catch (const std::bad_alloc&) {
    }
  }
  commands_ = VK_NULL_HANDLE;
  device_.discard(std::move(capture_));
  batches_.clear();
  open_ = {};
  value_ = timeline_->given;
  order_ = {kWorkStages, kWorkStages, kWorkStages};
  shown_ = follows_ = heeds_host_ = false;
  ++abandons_;
}

Status VulkanStream::wait(const Event& event) {
  GRETA_TRY(submit());
  const auto* state = static_cast<const VulkanEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "wait: the event was not created");
  const VulkanPoint point = device_.queue.event_point(*state);
  return point.timeline ? device_.queue.wait(point, patience_ns_) : Status{};
}

}  // namespace greta
