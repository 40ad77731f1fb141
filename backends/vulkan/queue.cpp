// The one queue of a device, and waits for it.
#include <algorithm>
#include <new>

#include "backends/vulkan/vulkan.h"

namespace greta {

constexpr uint64_t kSliceNs = 1'000'000'000;  // how often a wait looks whether the device was lost

VulkanTimeline::~VulkanTimeline() {
  if (!semaphore || adopted || device.out_of_reach()) return;
  device.vk.vkDestroySemaphore(device.handle, semaphore, nullptr);
}

Status VulkanQueue::submit(std::vector<VulkanBatch>& batches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<VulkanBatch> ready;  // allocated first, so that all batches are taken or none
  ready.reserve(held() + batches.size());
  hold(batches);
  const Status status = pump(ready);
  changed_->notify_all();
  return status;
}

// Submits held batches as long as there are some whose signals are submitted. `ready` has room for all.
Status VulkanQueue::pump(std::vector<VulkanBatch>& ready) {
  while (std::optional<VulkanBatch> batch = take_ready()) ready.push_back(std::move(*batch));
  return ready.empty() ? Status{} : submit_ready(ready);
}

namespace {

VkSemaphoreSubmitInfo semaphore_info(const VulkanPoint& point) {
  auto info = tagged<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
  info.semaphore = point.timeline->semaphore;
  info.value = point.value;
  info.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  return info;
}

// The arrays that the structs of a vkQueueSubmit2 point to.
struct Submission {
  std::vector<VkCommandBufferSubmitInfo> commands;
  std::vector<VkSemaphoreSubmitInfo> waits, signals;
  std::vector<VkSubmitInfo2> infos;

  explicit Submission(std::span<const VulkanBatch> batches) {
    for (const VulkanBatch& batch : batches) {
      auto info = tagged<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
      for (const VkCommandBuffer buffer : batch.commands) {
        auto command = tagged<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
        command.commandBuffer = buffer;
        commands.push_back(command);
        ++info.commandBufferInfoCount;
      }
      for (const VulkanPoint& wait : batch.waits) {
        if (wait.timeline->submitted < wait.value) continue;  // its stream is gone
        waits.push_back(semaphore_info(wait));
        ++info.waitSemaphoreInfoCount;
      }
      signals.push_back(semaphore_info(batch.done));
      for (const VulkanPoint& signal : batch.signals) signals.push_back(semaphore_info(signal));
      info.signalSemaphoreInfoCount = uint32_t(1 + batch.signals.size());
      infos.push_back(info);
    }
    uint32_t command = 0, wait = 0, signal = 0;  // the arrays grow no more, so pointers into them stay valid
    for (VkSubmitInfo2& info : infos) {
      info.pCommandBufferInfos = commands.data() + command;
      info.pWaitSemaphoreInfos = waits.data() + wait;
      info.pSignalSemaphoreInfos = signals.data() + signal;
      command += info.commandBufferInfoCount;
      wait += info.waitSemaphoreInfoCount;
      signal += info.signalSemaphoreInfoCount;
    }
  }
};

}  // namespace

Status VulkanQueue::submit_ready(std::span<const VulkanBatch> ready) {
  const auto submit = [&](std::span<const VulkanBatch> batches) -> VkResult {
    try {
      const Submission submission(batches);
      const std::lock_guard<const VulkanLock> lock(host_lock_);
      return device_.vk.vkQueueSubmit2(queue_, uint32_t(submission.infos.size()), submission.infos.data(),
                                       VK_NULL_HANDLE);
    } catch (const std::bad_alloc&) {
      return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
  };
  for (size_t first = 0; first < ready.size();) {
    GRETA_TRY(device_.usable());
    size_t end = first + 1;
    while (end < ready.size() && !ready[end - 1].alone) ++end;
    const VkResult result = submit(ready.subspan(first, end - first));
    // Batches of any stream that wait for these signals would wait for ever.
    if (result != VK_SUCCESS) device_.lose("vkQueueSubmit2", result);
    GRETA_TRY(device_.result(result, "vkQueueSubmit2"));
    first = end;
  }
  return {};
}

// Whether the point is reached within so short a time. A failure is found by who waits on.
bool VulkanQueue::comes_soon(const VulkanPoint& point, uint64_t patience_ns) {
  for (const uint64_t begun = now_ns(); now_ns() - begun < patience_ns;)
    if (reached(point)) return true;
  return false;
}

Status VulkanQueue::wait(const VulkanPoint& point, uint64_t patience_ns) {
  GRETA_TRY(device_.usable());
  GRETA_TRY(wait_submitted(point, [&] { return device_.usable(); }));
  if (submitted_by(*point.timeline) < point.value) return {};  // its stream was closed before it came
  if (comes_soon(point, patience_ns)) return device_.waited_well();
  auto info = tagged<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &point.timeline->semaphore;
  info.pValues = &point.value;
  const uint64_t slice = std::min(kSliceNs, device_.wait_limit_ns());
  uint64_t reached = 0, since = now_ns();  // when the stream was last seen to go on
  for (bool told = false;;) {
    VkResult result = device_.vk.vkWaitSemaphores(device_.handle, &info, slice);
    if (result == VK_TIMEOUT) GRETA_TRY(look_at_progress(point, &reached, &since, &told));
    if (result == VK_TIMEOUT && reached < point.value) continue;
    if (result != VK_TIMEOUT) GRETA_TRY(device_.result(result, "vkWaitSemaphores"));
    return device_.waited_well();
  }
}

// What a wait does when nothing came for a while: the device is lost if it has not gone on for too long. Many
// pieces of work may be under way, so the limit is on each of them.
Status VulkanQueue::look_at_progress(const VulkanPoint& point, uint64_t* reached, uint64_t* since,
                                     bool* told) {
  constexpr uint64_t kWarnNs = 10'000'000'000;
  GRETA_TRY(device_.usable());
  uint64_t value = 0;
  GRETA_TRY(
      device_.result(device_.vk.vkGetSemaphoreCounterValue(device_.handle, point.timeline->semaphore, &value),
                     "vkGetSemaphoreCounterValue"));
  const uint64_t now = now_ns();
  if (value > *reached) *reached = value, *since = now;
  if (now - *since > device_.wait_limit_ns()) device_.lose_by_hanging();
  if (now - *since > kWarnNs && !*told && !device_.physical.info.cpu_type) {
    device_.log()(LogLevel::Warning, "%s has not answered for 10 s", device_.physical.info.name);
    *told = true;
  }
  return device_.usable();
}

void VulkanQueue::close(VulkanTimeline& timeline) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget(timeline);
  // If batches that waited for this stream cannot be submitted, their own wait reports it.
  try {
    std::vector<VulkanBatch> ready;
    ready.reserve(held());
    [[maybe_unused]] const Status ignored = pump(ready);
  } catch (const std::bad_alloc&) {
    device_.lose("closing a stream", VK_ERROR_OUT_OF_HOST_MEMORY);
  }
  changed_->notify_all();
}

void VulkanQueue::wait_idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::lock_guard<const VulkanLock> host_lock(host_lock_);
  [[maybe_unused]] const Status ignored =
      device_.result(device_.vk.vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
}

bool VulkanQueue::reached(const VulkanPoint& point) {
  uint64_t value = 0;
  if (!device_.usable().ok()) return false;
  const VkResult result =
      device_.vk.vkGetSemaphoreCounterValue(device_.handle, point.timeline->semaphore, &value);
  return device_.result(result, "vkGetSemaphoreCounterValue").ok() && value >= point.value;
}

}  // namespace greta
