// A stream records commands and gives them to the queue in batches. A batch ends with a signal, or before a
// wait for another stream.
#include <algorithm>
#include <cstring>

#include "backends/hip/hip.h"

namespace greta {

Status HipStream::open() {
  timeline_ = std::make_shared<HipTimeline>(device_);
  timeline_->owner_thread = std::this_thread::get_id();
  const HipCurrent current(device_.hip, device_.index());
  GRETA_TRY(device_.driver_stream(&timeline_->owned));
  timeline_->stream = timeline_->owned->handle;
  return device_.result(device_.hip.hipEventCreateWithFlags(&timeline_->end, kHipEventWithoutTime),
                        "hipEventCreateWithFlags");
}

HipTimeline::~HipTimeline() {
  if (!end || !device.may_free()) return;
  const HipCurrent current(device.hip, device.index());
  (void)device.hip.hipEventDestroy(end);
}

HipDriverStream::~HipDriverStream() {
  if (!handle || !device.may_free()) return;
  const HipCurrent current(device.hip, device.index());
  (void)device.hip.hipStreamDestroy(handle);
}

Status HipDevice::driver_stream(std::shared_ptr<HipDriverStream>* out) {
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  if ((*out = shared_stream_.lock())) return {};
  auto made = std::make_shared<HipDriverStream>(*this);
  GRETA_TRY(
      result(hip.hipStreamCreateWithFlags(&made->handle, kHipNonBlockingStream), "hipStreamCreateWithFlags"));
  if (shares_stream_) shared_stream_ = made;
  *out = std::move(made);
  return {};
}

HipStream::~HipStream() {
  if (device_.hip.elsewhere()) return;
  device_.queue.close(*timeline_);
  // What is left was submitted and never waited for, so nobody can be told of a failure.
  if (timeline_->submitted) (void)device_.queue.wait({timeline_, timeline_->submitted}, nullptr);
}

Status HipStream::not_capturing(const char* what) const {
  if (device_.hip.elsewhere()) return device_.usable();
  if (capture_) return fail(Code::Argument, "%s: not inside a capture", what);
  return {};
}

HipCommand& HipStream::add(HipCommand::Kind kind) {
  std::vector<HipCommand>& commands = capture_ ? capture_->commands : open_.commands;
  HipCommand& command = commands.emplace_back();
  command.kind = kind;
  return command;
}

void HipStream::seal() {
  if (open_.empty()) return;
  open_.done = {timeline_, value_ + 1};
  batches_.push_back(std::move(open_));
  open_ = {};
  ++value_;
}

// What a launch reads and writes as a whole are counters, which it leaves 0.
void HipStream::note_counters(std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    if (access.mode != Access::kReadWrite || access.sparse) continue;
    void* const to = reinterpret_cast<void*>(access.slice.address());
    const auto there = [&](const HipCommand& c) { return c.to == to && c.bytes == access.slice.bytes; };
    if (std::ranges::any_of(capture_->counters, there)) continue;
    HipCommand& fill = capture_->counters.emplace_back();
    fill.kind = HipCommand::kFill;
    fill.to = to;
    fill.bytes = access.slice.bytes;
  }
}

Status HipStream::dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                           std::span<const Access> accesses) {
  GRETA_TRY(check_dispatch(kernel, groups, block));
  const int* limits = device_.properties().max_grid;
  for (uint32_t i = 0; i < 3; ++i)
    if (groups[i] > uint32_t(limits[i]))
      return fail(Code::Unsupported, "%s: a grid of %u x %u x %u groups, %s allows %d x %d x %d", kernel.name,
                  groups[0], groups[1], groups[2], device_.info().name, limits[0], limits[1], limits[2]);
  const auto* const state = static_cast<const HipKernel*>(kernel.handle);
  // The runtime counts threads along a direction in 32 bits.
  if (uint64_t(groups[0]) * state->threads > UINT32_MAX)
    return fail(Code::Unsupported, "%s: %u groups of %u threads, %s counts at most 4294967295 threads",
                kernel.name, groups[0], state->threads, device_.info().name);
  GRETA_TRY(device_.usable());
  HipCommand& command = add(HipCommand::kLaunch);
  command.kernel = state;
  memcpy(command.groups, groups, sizeof groups);
  if (capture_) {
    command.meets = meets_;
    meets_ = false;
    if (device_.persistent_groups()) note_counters(accesses);
  }
  if (!block.empty()) memcpy(command.block, block.data(), block.size());
  const std::vector<uint32_t>& appended = command.kernel->appended;
  command.block_bytes = uint32_t(block.size());
  if (appended.empty()) return {};
  // The kernel's struct begins with addresses, so its size is a multiple of theirs.
  const size_t end = block.size() + appended.size() * sizeof(uint32_t);
  command.block_bytes = uint32_t(round_up(end, sizeof(uint64_t)));
  memset(command.block + end, 0, command.block_bytes - end);
  memcpy(command.block + block.size(), appended.data(), appended.size() * sizeof(uint32_t));
  return {};
}

static const HipBuffer& state_of(const Slice& slice) {
  return *static_cast<const HipBuffer*>(slice.buffer->handle);
}

static Status writable(const Slice& to, const char* what) {
  if (state_of(to).imported) return fail(Code::Argument, "%s: imported memory is read-only", what);
  return {};
}

static int direction_of(const Slice& to, const Slice& from) {
  const bool to_host = state_of(to).memory != Memory::Device,
             from_host = state_of(from).memory != Memory::Device;
  if (to_host) return from_host ? kHipAnyToAny : kHipDeviceToHost;
  return from_host ? kHipHostToDevice : kHipDeviceToDevice;
}

Status HipStream::copy(const Slice& to, const Slice& from) {
  GRETA_TRY(check_copy(to, from));
  GRETA_TRY(writable(to, "copy"));
  GRETA_TRY(device_.usable());
  if (!to.bytes) return {};
  HipCommand& command = add(HipCommand::kCopy);
  command.to = reinterpret_cast<void*>(to.address());
  command.from = reinterpret_cast<const void*>(from.address());
  command.bytes = to.bytes;
  command.direction = direction_of(to, from);
  return {};
}

Status HipStream::fill(const Slice& to, uint32_t word) {
  GRETA_TRY(check_fill(to));
  GRETA_TRY(writable(to, "fill"));
  GRETA_TRY(device_.usable());
  if (!to.bytes) return {};
  HipCommand& command = add(HipCommand::kFill);
  command.to = reinterpret_cast<void*>(to.address());
  command.bytes = to.bytes;
  command.word = word;
  return {};
}

Status HipStream::barrier() {
  meets_ = true;
  return device_.usable();
}

static std::shared_ptr<HipEvent> event_of(const Event& event) {
  return event.handle ? *static_cast<std::shared_ptr<HipEvent>*>(event.handle) : nullptr;
}

Status HipStream::signal(Event& event) {
  GRETA_TRY(not_capturing("signal"));
  const std::shared_ptr<HipEvent> state = event_of(event);
  if (!state) return fail(Code::Argument, "signal: the event was not created");
  GRETA_TRY(device_.usable());
  add(HipCommand::kSignal).event = state;
  seal();
  device_.queue.set_event(*state, {timeline_, value_});
  return {};
}

Status HipStream::wait_for(const Event& event) {
  GRETA_TRY(not_capturing("wait_for"));
  const std::shared_ptr<HipEvent> state = event_of(event);
  if (!state) return fail(Code::Argument, "wait_for: the event was not created");
  const HipPoint point = device_.queue.event_point(*state);
  if (!point.timeline) return {};  // the event was never signalled
  seal();
  open_.waits.push_back(point);
  add(HipCommand::kWait).event = state;
  return {};
}

Status HipStream::begin_capture() {
  GRETA_TRY(not_capturing("begin_capture"));
  GRETA_TRY(device_.usable());
  capture_ = std::make_shared<HipGraph>(device_);
  return {};
}

// A graph of the driver is submitted as a whole.
Status HipStream::split() { return {}; }

Status HipStream::end_capture(Graph* out) {
  if (!capture_) return fail(Code::Argument, "end_capture: no capture was begun");
  const std::shared_ptr<HipGraph> graph = std::move(capture_);
  capture_ = nullptr;
  GRETA_TRY(device_.queue.capture(*graph));
  out->handle = new std::shared_ptr<HipGraph>(graph);
  return {};
}

Status HipStream::replay(const Graph& graph) {
  GRETA_TRY(not_capturing("replay"));
  if (!graph.handle) return fail(Code::Argument, "replay: the graph is empty or was destroyed");
  GRETA_TRY(device_.usable());
  add(HipCommand::kReplay).graph = *static_cast<const std::shared_ptr<HipGraph>*>(graph.handle);
  return {};
}

Status HipStream::submit() {
  GRETA_TRY(not_capturing("submit"));
  GRETA_TRY(device_.usable());
  seal();
  return batches_.empty() ? Status{} : device_.queue.submit(batches_);
}

Status HipStream::wait() {
  GRETA_TRY(submit());
  return value_ ? device_.queue.wait({timeline_, value_}, nullptr) : Status{};
}

Status HipStream::wait(const Event& event) {
  GRETA_TRY(submit());
  const std::shared_ptr<HipEvent> state = event_of(event);
  if (!state) return fail(Code::Argument, "wait: the event was not created");
  const HipPoint point = device_.queue.event_point(*state);
  return point.timeline ? device_.queue.wait(point, state.get()) : Status{};
}

void HipStream::abandon() noexcept {
  if (device_.hip.elsewhere()) return;
  capture_ = nullptr;
  batches_.clear();
  open_ = {};
  value_ = timeline_->given;
}

}  // namespace greta
