#include "backends/vulkan/chain.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "backends/vulkan/pipeline_cache.h"
#include "backends/vulkan/vulkan.h"

namespace greta {

constexpr uint32_t kStride = VulkanChainCell::kStride;
constexpr uint32_t kMaxGroups = VulkanChainCell::kMaxGroups;

// The first stage after a barrier waits for the cell before its own, which has no groups.
bool VulkanChain::next_stage(bool counts, uint64_t groups, bool ordered) {
  const bool fits = counts && groups <= kMaxGroups && last_ + 2 < kCells;
  const bool follows = fits && whole_ && !ordered;
  if (fits) last_ += follows ? 1 : 2;
  stage_ = fits ? last_ : 0;
  whole_ = fits;
  return follows;
}

uint64_t VulkanChain::link(bool counts, uint64_t groups) {
  if (!counts || !stage_ || groups_[stage_] + groups > kMaxGroups) {
    whole_ = false;
    return 0;
  }
  groups_[stage_] += uint32_t(groups);
  return memory.address + uint64_t(stage_) * kStride;
}

std::vector<uint8_t> VulkanChain::cells(uint64_t stuck) const {
  std::vector<uint8_t> bytes((last_ + 1) * kStride);
  for (uint32_t i = 0; i <= last_; ++i) {
    const VulkanChainCell cell = {stuck, groups_[i], 0};
    std::memcpy(bytes.data() + i * kStride, &cell, sizeof cell);
  }
  return bytes;
}

// --- the part of a stream

// A graph for whose cells there is no memory has barriers.
void VulkanStream::open_chain() {
  follows_ = false;
  if (!(device_.physical.info.features & kVulkanChain)) return;
  auto chain = std::make_unique<VulkanChain>();
  if (!device_.allocate(VulkanChain::kBytes, Memory::Device, &chain->memory).ok()) return clear_error_text();
  capture_->chain = std::move(chain);
}

// Returns the cell's address for a launch that is about to be recorded. No barrier then orders it.
uint64_t VulkanStream::link(const Kernel& kernel, uint64_t groups) {
  constexpr VkPipelineStageFlags2 kKernels = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  if (!capture_ || !capture_->chain) return 0;
  VulkanChain& chain = *capture_->chain;
  // Small kernels gain by the chain in steps of a few tokens. Many groups that only wait hold up others.
  const bool small = kernel.chain_field == VulkanChain::kBehind;
  const bool counts = kernel.chain_field != 0 && !(small && groups >= VulkanChain::kManyGroups);
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

// Fills the cells before the first replay, before their counts would overflow, and after an abandoned replay.
Status VulkanStream::fill_chain(VulkanChain& chain) {
  if (chain.abandons != abandons_) chain.replays = 0;
  chain.abandons = abandons_;
  if (chain.replays++ % VulkanChainCell::kMaxReplays) return {};
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

// Behind the path of the pipeline cache; a proof counts for the code that gave it.
constexpr char kNoChain[] = ".no-chain", kProvedChain[] = ".chain-";

// A device whose chains have failed once is opened without them, as long as its driver stays the same: an
// empty file beside its compiled kernels says so. Without a cache folder nothing remembers it.
Status VulkanDevice::waited_well() {
  const auto* stuck = static_cast<const volatile uint32_t*>(stuck_.mapped);
  if (!stuck || !*stuck) return {};
  lose("a kernel that waited in vain for the one before it", VK_ERROR_DEVICE_LOST);
  const bool remembers = chain_proved_ && !cache_path_.empty();
  if (remembers && !write_pipeline_cache(cache_path_ + kNoChain, physical, {}).ok())
    log_(LogLevel::Warning, "the next start will try chains of kernels again: %s", error_text());
  return fail(Code::Device,
              "a kernel on %s waited in vain for the one before it: close the device and open it again%s",
              physical.info.name, remembers ? ", then kernels follow each other by barriers" : "");
}

bool VulkanDevice::chain_failed_before() const {
  return !cache_path_.empty() && access((cache_path_ + kNoChain).c_str(), F_OK) == 0;
}

// The file that says that chains were right with this driver, so that a start need not test them again; ""
// where nothing is kept.
std::string VulkanDevice::chain_proof_path() const {
  if (cache_path_.empty()) return "";
  char code[17];
  format_text(code, sizeof code, "%016llx", (unsigned long long)checksum(kCheck.data(), kCheck.size()));
  return cache_path_ + kProvedChain + code;
}

// Runs stages of more groups than any device holds at once. `memory`: values, then the count of wrong ones.
Status VulkanDevice::check_chain(Stream& stream, const Kernel& kernel, const Slice& memory, Graph* graph) {
  constexpr uint32_t kStages = 24;
  const uint32_t groups = uint32_t((memory.bytes - sizeof(uint32_t)) / (2 * sizeof(uint32_t)));
  const uint64_t wrong = memory.address() + memory.bytes - sizeof(uint32_t);
  GRETA_TRY(stream.fill(memory, 0));
  GRETA_TRY(stream.begin_capture());
  Status recorded;
  for (uint32_t stage = 0; stage < kStages && recorded.ok(); ++stage) {
    const VulkanChainCheck block = {memory.address(), wrong, 0, stage, groups};
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

// Tests whether launches can wait for each other. Vulkan does not promise that the groups of one launch are
// placed before those of the next, and no other check would notice one that does not. A failure means no
// chains.
Status VulkanDevice::prove_chain() {
  if (!(physical.info.features & kVulkanChain)) return {};
  Buffer memory, answer;
  Kernel kernel;
  Graph graph;
  std::unique_ptr<Stream> stream;
  const std::string proof = chain_proof_path();
  const bool proved_before = !proof.empty() && access(proof.c_str(), F_OK) == 0;
  const auto run = [&]() -> Status {
    if (chain_failed_before())
      return fail(Code::Unsupported, "chains of kernels have failed on this device before");
    if (kCheck.empty()) return fail(Code::Unsupported, "this build has no kernel to test chains with");
    const uint32_t groups =
        physical.info.cpu_type ? 16 : 64 * physical.info.unit_count;  // a unit holds 32 or less
    GRETA_TRY(allocate(64, Memory::Readback, &stuck_));
    std::memset(stuck_.mapped, 0, 64);
    if (proved_before) return {};
    GRETA_TRY(allocate((2 * groups + 1) * sizeof(uint32_t), Memory::Device, &memory));
    GRETA_TRY(allocate(sizeof(uint32_t), Memory::Readback, &answer));
    GRETA_TRY(load({.name = "chain_check",
                    .code = kCheck,
                    .group_size = {64, 1, 1},
                    .chain_field = offsetof(VulkanChainCheck, chain)},
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
  if (status.ok()) {
    if (!proof.empty() && !proved_before) (void)write_pipeline_cache(proof, physical, {});
    clear_error_text();
    return chain_proved_ = true, Status{};
  }
  physical.info.features &= ~uint32_t(kVulkanChain);
  log_(LogLevel::Info, "%s: kernels follow each other by barriers: %s", physical.info.name, error_text());
  clear_error_text();
  const bool waited = stuck_.mapped && *static_cast<volatile uint32_t*>(stuck_.mapped);
  lost_by_chains_ = lost_by_ && !waited;
  if (!waited) return {};
  lost_by_ = nullptr;  // nothing but the check was lost
  release(stuck_);
  return {};
}

}  // namespace greta
