// Recording: each call becomes one command. It is checked here, so that running it cannot fail.
#include <cstring>

#include "backends/cpu/cpu.h"

namespace greta {

CpuStream::~CpuStream() {
  if (device_.process.elsewhere()) return;
  std::unique_lock<std::mutex> lock(device_.order);
  // What is left was submitted and never waited for, so nobody can be told of a failure.
  [[maybe_unused]] const Status ignored = queue_->run(lock);
}

// A failed allocation leaves the list as it was.
CpuCommand& CpuStream::record(CpuCommand::Kind kind) {
  std::vector<CpuCommand>& list = capture_ ? capture_->commands : recorded_;
  CpuCommand& command = list.emplace_back();
  command.kind = kind;
  return command;
}

Status CpuStream::not_capturing(const char* what) const {
  GRETA_TRY(device_.process.check());
  if (capture_) return fail(Code::Argument, "%s: not inside a capture", what);
  return {};
}

Status CpuStream::dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                           std::span<const Access>) {
  GRETA_TRY(check_dispatch(kernel, groups, block));
  CpuCommand& command = record(CpuCommand::Dispatch);
  command.groups = groups[0] * groups[1] * groups[2];
  command.function = reinterpret_cast<HostFunction>(kernel.handle);
  if (!block.empty()) memcpy(command.block, block.data(), block.size());
  return {};
}

static Status writable(const Slice& to, const char* what) {
  if (static_cast<const CpuAllocation*>(to.buffer->handle)->origin == CpuAllocation::Imported)
    return fail(Code::Argument, "%s: imported memory is read-only", what);
  return {};
}

Status CpuStream::copy(const Slice& to, const Slice& from) {
  GRETA_TRY(check_copy(to, from));
  GRETA_TRY(writable(to, "copy"));
  CpuCommand& command = record(CpuCommand::Copy);
  command.to = reinterpret_cast<uint8_t*>(to.address());
  command.from = reinterpret_cast<const uint8_t*>(from.address());
  command.bytes = to.bytes;
  return {};
}

Status CpuStream::fill(const Slice& to, uint32_t word) {
  GRETA_TRY(check_fill(to));
  GRETA_TRY(writable(to, "fill"));
  CpuCommand& command = record(CpuCommand::Fill);
  command.to = reinterpret_cast<uint8_t*>(to.address());
  command.bytes = to.bytes;
  command.word = word;
  return {};
}

Status CpuStream::barrier() {
  record(CpuCommand::Barrier);
  return {};
}

Status CpuStream::signal(Event& event) {
  GRETA_TRY(not_capturing("signal"));
  auto* state = static_cast<CpuEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "signal: the event was not created");
  CpuCommand& command = record(CpuCommand::Signal);
  const std::lock_guard<std::mutex> lock(device_.order);
  command.event = state;
  command.ticket = ++state->recorded;
  state->queue = queue_;
  queue_->recorder = std::this_thread::get_id();
  return {};
}

Status CpuStream::wait_for(const Event& event) {
  GRETA_TRY(not_capturing("wait_for"));
  auto* state = static_cast<CpuEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "wait_for: the event was not created");
  CpuCommand& command = record(CpuCommand::WaitFor);
  const std::lock_guard<std::mutex> lock(device_.order);
  command.event = state;
  command.ticket = state->recorded;
  command.queue = state->queue;
  return {};
}

Status CpuStream::begin_capture() {
  GRETA_TRY(not_capturing("begin_capture"));
  capture_ = std::make_unique<CpuGraph>();
  return {};
}

Status CpuStream::end_capture(Graph* out) {
  if (!capture_) return fail(Code::Argument, "end_capture: no capture was begun");
  out->handle = capture_.release();
  return {};
}

Status CpuStream::replay(const Graph& graph) {
  GRETA_TRY(not_capturing("replay"));
  if (!graph.handle) return fail(Code::Argument, "replay: the graph is empty or was destroyed");
  record(CpuCommand::Replay).graph = static_cast<const CpuGraph*>(graph.handle);
  return {};
}

// The lists are swapped if possible and keep their capacity, so that repeated steps allocate nothing.
Status CpuStream::submit() {
  GRETA_TRY(not_capturing("submit"));
  const std::lock_guard<std::mutex> lock(device_.order);
  if (queue_->submitted.empty())
    queue_->submitted.swap(recorded_);
  else
    queue_->submitted.insert(queue_->submitted.end(), recorded_.begin(), recorded_.end());
  recorded_.clear();
  return {};
}

Status CpuStream::wait() {
  GRETA_TRY(submit());
  std::unique_lock<std::mutex> lock(device_.order);
  return queue_->run(lock);
}

void CpuStream::abandon() noexcept {
  recorded_.clear();
  capture_.reset();
}

// Runs submitted work at least up to the signal.
Status CpuStream::wait(const Event& event) {
  GRETA_TRY(submit());
  const auto* state = static_cast<const CpuEvent*>(event.handle);
  if (!state) return fail(Code::Argument, "wait: the event was not created");
  std::unique_lock<std::mutex> lock(device_.order);
  CpuCommand until;
  until.event = static_cast<CpuEvent*>(event.handle);
  until.ticket = state->recorded;
  return queue_->run(lock, &until);
}

}  // namespace greta
