#include "runtime/checked_device.h"

#include <cstring>
#include <mutex>

#include "runtime/checked_hazards.h"

namespace greta {

namespace {

struct CheckedCommand {
  enum Kind : uint8_t { Dispatch, Copy, Fill, Barrier } kind = Barrier;
  Work work;
  Kernel kernel;
  uint32_t groups[3] = {1, 1, 1};
  uint32_t block_bytes = 0, word = 0;
  alignas(8) uint8_t block[kMaxBlockBytes] = {};
  std::vector<BufferUse> uses;  // Copy: to, from. Fill: to
};

struct CheckedGraph {
  std::vector<CheckedCommand> commands;
};

class CheckedDevice final : public Device {
 public:
  // It runs commands one by one, and does not see what others write.
  explicit CheckedDevice(Device& inner) : inner_(inner), info_(inner.info()) {
    info_.waits_for_host = info_.shares_host = false;
  }

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return inner_.memory_free(); }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override;
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override { return inner_.load(code, out); }
  void unload(Kernel& kernel) override { inner_.unload(kernel); }
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override { return inner_.create_event(out, timed); }
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override {
    return inner_.elapsed_ns(from, to, out);
  }
  Status host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) override {
    return inner_.host_ns(event, out, error_ns);
  }
  Status describe_code(const KernelCode& code, std::string* out) override {
    return inner_.describe_code(code, out);
  }
  void destroy(Event& event) override { inner_.destroy(event); }
  void destroy(Graph& graph) override {
    delete static_cast<CheckedGraph*>(graph.handle);
    graph = {};
  }

  // Launches of all streams take turns, since one changes the protection of pages that another would use.
  std::mutex mutex;
  std::vector<std::unique_ptr<TrackedBuffer>> buffers;  // all that were ever allocated, released ones too
  PageGuard guard;

 private:
  void track(const Buffer& inner, std::unique_ptr<TrackedBuffer> tracked, bool guarded, Buffer* out);

  Device& inner_;
  DeviceInfo info_;
};

class CheckedStream final : public Stream {
 public:
  CheckedStream(CheckedDevice& device, std::unique_ptr<Stream> inner)
      : device_(device), inner_(std::move(inner)) {}

  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override;
  Status copy(const Slice& to, const Slice& from) override;
  Status fill(const Slice& to, uint32_t word) override;
  Status barrier() override;
  Status signal(Event& event) override;
  Status wait_for(const Event& event) override;
  Status begin_capture() override;
  Status split() override { return {}; }  // commands run one by one anyhow
  Status end_capture(Graph* out) override;
  Status replay(const Graph& graph) override;
  Status submit() override;
  Status wait() override;
  Status wait(const Event& event) override;
  void abandon() noexcept override {
    capture_.reset();
    inner_->abandon();
  }

 private:
  Status outside(const char* what) const;
  Work next_work(const char* name) const;
  Status take(CheckedCommand&& command);  // records it during a capture, else checks and runs it
  Status execute(const CheckedCommand& command);
  Status run(const CheckedCommand& command);

  CheckedDevice& device_;
  std::unique_ptr<Stream> inner_;
  std::unique_ptr<CheckedGraph> capture_;
  Hazards hazards_;
  uint64_t commands_ = 0;
};

void CheckedDevice::track(const Buffer& inner, std::unique_ptr<TrackedBuffer> tracked, bool guarded,
                          Buffer* out) {
  tracked->inner = inner;
  // The mapping of device memory is hidden, since writes of the host through it would not be seen.
  const bool hidden = tracked->memory == Memory::Device && !tracked->imported;
  *out = {tracked.get(), inner.address, hidden ? nullptr : inner.mapped, inner.bytes};
  const std::lock_guard<std::mutex> lock(mutex);
  tracked->number = buffers.size() + 1;
  if (guarded) guard.guard(*tracked);
  buffers.push_back(std::move(tracked));
}

Status CheckedDevice::allocate(uint64_t bytes, Memory memory, Buffer* out) {
  auto tracked = std::make_unique<TrackedBuffer>();
  Buffer inner;
  GRETA_TRY(inner_.allocate(bytes, memory, &inner));
  tracked->memory = memory;
  // Kernels of this process run while the guard stands, and each of its buffers has pages of its own.
  const bool guarded = memory == Memory::Device && inner_.info().host_functions && inner.mapped;
  track(inner, std::move(tracked), guarded, out);
  return {};
}

Status CheckedDevice::import_host(const void* pages, uint64_t bytes, Buffer* out) {
  auto tracked = std::make_unique<TrackedBuffer>();
  Buffer inner;
  GRETA_TRY(inner_.import_host(pages, bytes, &inner));
  tracked->imported = true;
  track(inner, std::move(tracked), false, out);
  return {};
}

void CheckedDevice::release(Buffer& buffer) {
  auto* tracked = static_cast<TrackedBuffer*>(buffer.handle);
  buffer = {};
  const std::lock_guard<std::mutex> lock(mutex);
  if (!tracked || !tracked->alive) return;
  tracked->alive = false;
  guard.forget(*tracked);
  inner_.release(tracked->inner);
}

Status CheckedDevice::create_stream(Stream** out) {
  Stream* inner;
  GRETA_TRY(inner_.create_stream(&inner));
  std::unique_ptr<Stream> owned(inner);
  *out = new CheckedStream(*this, std::move(owned));
  return {};
}

BufferUse use_of(const Slice& slice, Access::Mode mode, bool sparse = false) {
  return {static_cast<TrackedBuffer*>(slice.buffer->handle), slice.offset, slice.bytes, mode, sparse};
}

Slice inner_slice(const BufferUse& use) { return {&use.buffer->inner, use.offset, use.bytes}; }

Status CheckedStream::outside(const char* what) const {
  return capture_ ? fail(Code::Argument, "%s: not inside a capture", what) : Status{};
}

Work CheckedStream::next_work(const char* name) const {
  return {name, capture_ ? capture_->commands.size() + 1 : commands_ + 1, capture_ != nullptr};
}

Status CheckedStream::dispatch(const Kernel& kernel, const uint32_t (&groups)[3],
                               std::span<const uint8_t> block, std::span<const Access> accesses) {
  GRETA_TRY(check_dispatch(kernel, groups, block));
  CheckedCommand command;
  command.kind = CheckedCommand::Dispatch;
  command.work = next_work(kernel.name);
  command.kernel = kernel;
  memcpy(command.groups, groups, sizeof groups);
  command.block_bytes = uint32_t(block.size());
  if (!block.empty()) memcpy(command.block, block.data(), block.size());
  for (const Access& access : accesses) {
    if (!access.slice.buffer || !access.slice.buffer->handle)
      return fail(Code::Device, "%s: access %zu of %zu has a buffer that is empty or was released",
                  describe(command.work).text, size_t(&access - accesses.data()) + 1, accesses.size());
    command.uses.push_back(use_of(access.slice, access.mode, access.sparse));
  }
  return take(std::move(command));
}

Status CheckedStream::copy(const Slice& to, const Slice& from) {
  GRETA_TRY(check_copy(to, from));
  CheckedCommand command;
  command.kind = CheckedCommand::Copy;
  command.work = next_work("copy");
  command.uses = {use_of(to, Access::kWrite), use_of(from, Access::kRead)};
  return take(std::move(command));
}

Status CheckedStream::fill(const Slice& to, uint32_t word) {
  GRETA_TRY(check_fill(to));
  CheckedCommand command;
  command.kind = CheckedCommand::Fill;
  command.work = next_work("fill");
  command.word = word;
  command.uses = {use_of(to, Access::kWrite)};
  return take(std::move(command));
}

Status CheckedStream::barrier() {
  CheckedCommand command;
  command.work = next_work("barrier");
  return take(std::move(command));
}

Status CheckedStream::take(CheckedCommand&& command) {
  if (!capture_) {
    ++commands_;
    return execute(command);
  }
  for (const BufferUse& use : command.uses) GRETA_TRY(check_lifetime(command.work, use));
  capture_->commands.push_back(std::move(command));
  return {};
}

Status CheckedStream::execute(const CheckedCommand& command) {
  if (command.kind == CheckedCommand::Barrier) {
    hazards_.barrier();
    return {};
  }
  const std::lock_guard<std::mutex> lock(device_.mutex);
  for (const BufferUse& use : command.uses) {
    GRETA_TRY(check_lifetime(command.work, use));
    GRETA_TRY(check_written(command.work, use));
  }
  GRETA_TRY(hazards_.check(command.work, command.uses));
  GRETA_TRY(run(command));
  hazards_.add(command.work, command.uses);
  for (const BufferUse& use : command.uses)
    if (use.writes()) use.buffer->written.add(use.offset, use.offset + use.bytes);
  return {};
}

Status CheckedStream::run(const CheckedCommand& command) {
  device_.guard.allow(command.uses);
  if (command.kind == CheckedCommand::Copy) {
    GRETA_TRY(inner_->copy(inner_slice(command.uses[0]), inner_slice(command.uses[1])));
    return inner_->wait();
  }
  if (command.kind == CheckedCommand::Fill) {
    GRETA_TRY(inner_->fill(inner_slice(command.uses[0]), command.word));
    return inner_->wait();
  }
  std::vector<Access> accesses;
  for (const BufferUse& use : command.uses) accesses.push_back({inner_slice(use), use.mode, use.sparse});
  GRETA_TRY(inner_->dispatch(command.kernel, command.groups, {command.block, command.block_bytes}, accesses));
  return inner_->wait();
}

// All work before the signal has run already, so the event's time is right and a wait for it is over at once.
Status CheckedStream::signal(Event& event) {
  GRETA_TRY(outside("signal"));
  GRETA_TRY(inner_->signal(event));
  return inner_->wait();
}

Status CheckedStream::wait_for(const Event& event) {
  GRETA_TRY(outside("wait_for"));
  if (!event.handle) return fail(Code::Argument, "wait_for: the event was not created");
  return {};
}

Status CheckedStream::begin_capture() {
  GRETA_TRY(outside("begin_capture"));
  capture_ = std::make_unique<CheckedGraph>();
  return {};
}

// Conflicts inside a plan are found here, conflicts between plans at the replay.
Status CheckedStream::end_capture(Graph* out) {
  if (!capture_) return fail(Code::Argument, "end_capture: no capture was begun");
  const std::unique_ptr<CheckedGraph> graph = std::move(capture_);
  Hazards hazards;
  for (const CheckedCommand& command : graph->commands) {
    if (command.kind == CheckedCommand::Barrier) hazards.barrier();
    GRETA_TRY(hazards.check(command.work, command.uses));
    hazards.add(command.work, command.uses);
  }
  out->handle = new CheckedGraph(std::move(*graph));
  return {};
}

Status CheckedStream::replay(const Graph& graph) {
  GRETA_TRY(outside("replay"));
  if (!graph.handle) return fail(Code::Argument, "replay: the graph is empty or was destroyed");
  for (const CheckedCommand& command : static_cast<const CheckedGraph*>(graph.handle)->commands)
    GRETA_TRY(execute(command));
  return {};
}

Status CheckedStream::submit() {
  GRETA_TRY(outside("submit"));
  return inner_->submit();
}

Status CheckedStream::wait() {
  GRETA_TRY(outside("wait"));
  hazards_.waited();
  return inner_->wait();
}

// For the caller, work after the signal may still be running, so its hazards stay.
Status CheckedStream::wait(const Event& event) {
  GRETA_TRY(outside("wait"));
  return inner_->wait(event);
}

}  // namespace

Status open_checked_device(Device* inner, Device** out) {
  *out = new CheckedDevice(*inner);
  return {};
}

}  // namespace greta
