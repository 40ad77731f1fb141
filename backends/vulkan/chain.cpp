#include "backends/vulkan/chain.h"

#include <cstddef>
#include <cstring>

#include "backends/vulkan/vulkan.h"
#include "kernels/abi/chain.h"

namespace greta {

static_assert(VulkanChain::kBytes == VulkanChain::kCells * kChainStride && sizeof(ChainCell) <= kChainStride);

// Nothing waits for a cell of no groups, so one stands before the first stage after a barrier.
bool VulkanChain::next_stage(bool counts, uint64_t groups, bool ordered) {
  const bool fits = counts && groups <= kChainGroups && last_ + 2 < kCells;
  const bool follows = fits && whole_ && !ordered;
  if (fits) last_ += follows ? 1 : 2;
  stage_ = fits ? last_ : 0;
  whole_ = fits;
  return follows;
}

uint64_t VulkanChain::link(bool counts, uint64_t groups) {
  if (!counts || !stage_ || groups_[stage_] + groups > kChainGroups) {
    whole_ = false;
    return 0;
  }
  groups_[stage_] += uint32_t(groups);
  return memory.address + uint64_t(stage_) * kChainStride;
}

std::vector<uint8_t> VulkanChain::cells(uint64_t stuck) const {
  std::vector<uint8_t> bytes((last_ + 1) * kChainStride);
  for (uint32_t i = 0; i <= last_; ++i) {
    const ChainCell cell = {stuck, groups_[i], 0};
    std::memcpy(bytes.data() + i * kChainStride, &cell, sizeof cell);
  }
  return bytes;
}

// --- the part of a stream

// Without memory for it the graph has barriers.
void VulkanStream::open_chain() {
  follows_ = false;
  if (!(device_.physical.info.features & kVulkanChain)) return;
  auto chain = std::make_unique<VulkanChain>();
  if (!device_.allocate(VulkanChain::kBytes, Memory::Device, &chain->memory).ok()) return clear_error_text();
  capture_->chain = std::move(chain);
}

// The cell of a launch that is about to be recorded; what the chain orders, no barrier has to.
uint64_t VulkanStream::link(const Kernel& kernel, uint64_t groups) {
  constexpr VkPipelineStageFlags2 kKernels = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  if (!capture_ || !capture_->chain) return 0;
  VulkanChain& chain = *capture_->chain;
  const bool counts = kernel.chain_field != 0;
  if (order_.owed_to_kernels) {
    follows_ = chain.next_stage(counts, groups, order_.owed_to_kernels != kKernels);
    if (follows_) order_.owed_to_kernels = 0;
  }
  const uint64_t cell = chain.link(counts, groups);
  if (!cell && follows_) {  // this one cannot wait
    order_.owed_to_kernels = kKernels;
    follows_ = false;
  }
  return cell;
}

// Before the first replay, before counts would overflow, and where the last time may have been abandoned.
Status VulkanStream::fill_chain(VulkanChain& chain) {
  if (chain.abandons != abandons_) chain.replays = 0;
  chain.abandons = abandons_;
  if (chain.replays++ % kChainReplays) return {};
  const std::vector<uint8_t> cells = chain.cells(device_.stuck_address());
  GRETA_TRY(begin());
  GRETA_TRY(barrier());
  order(VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT);
  const VkBuffer buffer = static_cast<VulkanBuffer*>(chain.memory.handle)->buffer;
  device_.vk.vkCmdUpdateBuffer(commands_, buffer, 0, cells.size(), cells.data());
  return barrier();
}

// --- the part of the device

#ifdef GRETA_VULKAN_CHAIN
extern "C" const uint8_t kernel_vulkan_chain_check[], kernel_vulkan_chain_check_end[];
static const CodeBytes kCheck = {kernel_vulkan_chain_check, kernel_vulkan_chain_check_end};
#else
static const CodeBytes kCheck;
#endif

static std::atomic<bool> g_failed{false};  // then a device that this process opens again has no chains

Status VulkanDevice::waited_well() {
  const auto* stuck = static_cast<const volatile uint32_t*>(stuck_.mapped);
  if (!stuck || !*stuck) return {};
  g_failed = true;
  lose("a kernel that waited in vain for the one before it", VK_ERROR_DEVICE_LOST);
  return fail(Code::Device,
              "a kernel on %s waited in vain for the one before it: close the device and open it again, "
              "then kernels follow each other by barriers",
              physical.info.name);
}

// Stages of as many groups as no device holds at once. `memory` is values, then the count of what was wrong.
Status VulkanDevice::check_chain(Stream& stream, const Kernel& kernel, const Slice& memory, Graph* graph) {
  constexpr uint32_t kStages = 24;
  const uint32_t groups = uint32_t((memory.bytes - sizeof(uint32_t)) / (2 * sizeof(uint32_t)));
  const uint64_t wrong = memory.address() + memory.bytes - sizeof(uint32_t);
  GRETA_TRY(stream.fill(memory, 0));
  GRETA_TRY(stream.begin_capture());
  Status recorded;
  for (uint32_t stage = 0; stage < kStages && recorded.ok(); ++stage) {
    const ChainCheckBlock block = {memory.address(), wrong, 0, stage, groups};
    uint8_t bytes[sizeof block];
    std::memcpy(bytes, &block, sizeof block);
    const Access access = {memory, Access::kReadWrite, true};
    recorded = stream.barrier();
    if (recorded.ok()) recorded = stream.dispatch(kernel, {groups, 1, 1}, bytes, {&access, 1});
  }
  GRETA_TRY(stream.end_capture(graph));
  GRETA_TRY(recorded);
  for (uint32_t replay = 0; replay < 2; ++replay) GRETA_TRY(stream.replay(*graph));
  return stream.barrier();
}

// Whether launches can wait for each other: Vulkan does not promise that groups of one are placed before
// those of the next, nor would a driver that errs here be seen to err elsewhere. A device that fails does
// without.
Status VulkanDevice::prove_chain() {
  if (!(physical.info.features & kVulkanChain)) return {};
  Buffer memory, answer;
  Kernel kernel;
  Graph graph;
  std::unique_ptr<Stream> stream;
  const auto run = [&]() -> Status {
    if (g_failed) return fail(Code::Unsupported, "they have failed before");
    if (kCheck.empty()) return fail(Code::Unsupported, "there is no kernel to try it with");
    const uint32_t groups =
        physical.info.cpu_type ? 16 : 64 * physical.info.unit_count;  // a unit holds 32 or less
    GRETA_TRY(allocate(64, Memory::Readback, &stuck_));
    std::memset(stuck_.mapped, 0, 64);
    GRETA_TRY(allocate((2 * groups + 1) * sizeof(uint32_t), Memory::Device, &memory));
    GRETA_TRY(allocate(sizeof(uint32_t), Memory::Readback, &answer));
    GRETA_TRY(load({.name = "chain_check",
                    .code = kCheck,
                    .group_size = {64, 1, 1},
                    .chain_field = offsetof(ChainCheckBlock, chain)},
                   &kernel));
    Stream* made = nullptr;
    GRETA_TRY(create_stream(&made));
    stream.reset(made);
    const Slice whole = {&memory, 0, memory.bytes};
    GRETA_TRY(check_chain(*stream, kernel, whole, &graph));
    const Slice wrongs = {&memory, memory.bytes - sizeof(uint32_t), sizeof(uint32_t)};
    GRETA_TRY(stream->copy({&answer, 0, answer.bytes}, wrongs));
    GRETA_TRY(stream->wait());
    uint32_t wrong;
    std::memcpy(&wrong, answer.mapped, sizeof wrong);
    if (wrong) return fail(Code::Device, "%u values were not there in time", wrong);
    return {};
  };
  const Status status = run();
  stream.reset();
  destroy(graph);
  unload(kernel);
  release(memory);
  release(answer);
  if (status.ok()) return {};
  physical.info.features &= ~uint32_t(kVulkanChain);
  log_(LogLevel::Info, "%s: kernels follow each other by barriers: %s", physical.info.name, error_text());
  clear_error_text();
  const bool waited = stuck_.mapped && *static_cast<volatile uint32_t*>(stuck_.mapped);
  lost_by_chains_ = lost_by_ && !waited;
  if (!waited) return {};
  g_failed = false;  // nothing but the check was lost
  lost_by_ = nullptr;
  release(stuck_);
  return {};
}

}  // namespace greta
