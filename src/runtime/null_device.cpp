// Buffers have addresses but no memory behind them, unless the host must see them. Commands are only checked.
#include "runtime/null_device.h"

#include <atomic>
#include <memory>

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

constexpr uint64_t kFirstAddress = uint64_t(1) << 44;  // the process has nothing mapped there
constexpr uint64_t kPageBytes = 4096;

struct NullEvent {
  std::atomic<bool> signalled{false};
};
struct NullGraph {};

class NullDevice final : public Device {
 public:
  explicit NullDevice(const NullOptions& options);

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return options_.memory_bytes - used_bytes_; }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override;
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override;
  void unload(Kernel& kernel) override { kernel = {}; }
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override;
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override;
  void destroy(Event& event) override;
  void destroy(Graph& graph) override;

  Status usable() const { return lost_ ? lost() : Status{}; }
  Status count_submit();

 private:
  static Status lost() { return fail(Code::Device, "the null device was lost: close it and open it again"); }

  NullOptions options_;
  DeviceInfo info_;
  std::atomic<uint64_t> allocations_{0}, submits_{0}, used_bytes_{0}, next_address_{kFirstAddress};
  std::atomic<bool> lost_{false};
};

struct NullBuffer {
  uint64_t bytes = 0;     // of the device's memory
  void* pages = nullptr;  // host memory that is given back at the release
};

class NullStream final : public Stream {
 public:
  explicit NullStream(NullDevice& device) : device_(device) {}

  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access>) override {
    GRETA_TRY(check_dispatch(kernel, groups, block));
    return record();
  }
  Status copy(const Slice& to, const Slice& from) override {
    GRETA_TRY(check_copy(to, from));
    return record();
  }
  Status fill(const Slice& to, uint32_t) override {
    GRETA_TRY(check_fill(to));
    return record();
  }
  Status barrier() override { return record(); }
  Status signal(Event& event) override {
    GRETA_TRY(outside("signal"));
    if (!event.handle) return fail(Code::Argument, "signal: the event was not created");
    static_cast<NullEvent*>(event.handle)->signalled = true;
    return record();
  }
  Status wait_for(const Event& event) override {
    GRETA_TRY(outside("wait_for"));
    if (!event.handle) return fail(Code::Argument, "wait_for: the event was not created");
    return record();
  }
  Status begin_capture() override {
    GRETA_TRY(outside("begin_capture"));
    capture_ = std::make_unique<NullGraph>();
    return device_.usable();
  }
  Status split() override { return device_.usable(); }
  Status end_capture(Graph* out) override {
    if (!capture_) return fail(Code::Argument, "end_capture: no capture was begun");
    GRETA_TRY(device_.usable());
    out->handle = capture_.release();
    return {};
  }
  Status replay(const Graph& graph) override {
    GRETA_TRY(outside("replay"));
    if (!graph.handle) return fail(Code::Argument, "replay: the graph is empty or was destroyed");
    return record();
  }
  Status submit() override {
    GRETA_TRY(outside("submit"));
    return device_.count_submit();
  }
  Status wait() override {
    GRETA_TRY(outside("wait"));
    return device_.count_submit();
  }
  Status wait(const Event& event) override {
    GRETA_TRY(outside("wait"));
    if (!event.handle) return fail(Code::Argument, "wait: the event was not created");
    return device_.count_submit();
  }
  void abandon() noexcept override { capture_.reset(); }

 private:
  Status outside(const char* what) const {
    return capture_ ? fail(Code::Argument, "%s: not inside a capture", what) : Status{};
  }
  Status record() const { return device_.usable(); }

  NullDevice& device_;
  std::unique_ptr<NullGraph> capture_;
};

NullDevice::NullDevice(const NullOptions& options) : options_(options) {
  format_text(info_.name, sizeof info_.name, "null");
  format_text(info_.backend, sizeof info_.backend, "null");
  format_text(info_.arch, sizeof info_.arch, "null");
  format_text(info_.driver, sizeof info_.driver, "greta");
  info_.memory_bytes = options.memory_bytes;
  info_.max_allocation_bytes = options.memory_bytes;
  info_.shared_bytes = 64 << 10;
}

Status NullDevice::allocate(uint64_t bytes, Memory memory, Buffer* out) {
  GRETA_TRY(usable());
  if (!bytes) return fail(Code::Argument, "allocate: a buffer of 0 bytes");
  if (++allocations_ == options_.fail_allocation)
    return fail(Code::Memory, "cannot allocate %llu bytes: allocation %llu was told to fail",
                (unsigned long long)bytes, (unsigned long long)options_.fail_allocation);
  auto buffer = std::make_unique<NullBuffer>();
  uint64_t used = used_bytes_;
  do {
    if (bytes > options_.memory_bytes - used)
      return fail(Code::Memory, "cannot allocate %llu bytes: %llu of %llu are free", Number(bytes),
                  Number(options_.memory_bytes - used), Number(options_.memory_bytes));
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
  buffer->bytes = bytes;
  if (memory != Memory::Device && !(buffer->pages = map_pages(bytes))) {
    used_bytes_ -= bytes;
    return fail(Code::Memory, "cannot allocate %llu bytes of host memory", (unsigned long long)bytes);
  }
  const uint64_t address = next_address_.fetch_add(round_up(bytes, kPageBytes));
  *out = {buffer.get(), address, buffer->pages, bytes};
  (void)buffer.release();
  return {};
}

Status NullDevice::import_host(const void* pages, uint64_t bytes, Buffer* out) {
  GRETA_TRY(usable());
  if (!pages || !bytes) return fail(Code::Argument, "import_host: no pages");
  *out = {new NullBuffer, reinterpret_cast<uint64_t>(pages), const_cast<void*>(pages), bytes};
  return {};
}

void NullDevice::release(Buffer& buffer) {
  auto* state = static_cast<NullBuffer*>(buffer.handle);
  if (!state) return;
  unmap_pages(state->pages, buffer.bytes);
  used_bytes_ -= state->bytes;
  delete state;
  buffer = {};
}

Status NullDevice::load(const KernelCode& code, Kernel* out) {
  GRETA_TRY(usable());
  *out = {};
  out->handle = this;  // any non-null pointer: nothing is called through it
  for (int i = 0; i < 3; ++i) out->group_size[i] = code.group_size[i];
  out->name = code.name;
  return {};
}

Status NullDevice::create_stream(Stream** out) {
  GRETA_TRY(usable());
  *out = new NullStream(*this);
  return {};
}

Status NullDevice::create_event(Event* out, bool) {
  GRETA_TRY(usable());
  out->handle = new NullEvent;
  return {};
}

Status NullDevice::elapsed_ns(const Event& from, const Event& to, uint64_t* out) {
  GRETA_TRY(usable());
  for (const Event* event : {&from, &to})
    if (!event->handle || !static_cast<const NullEvent*>(event->handle)->signalled)
      return fail(Code::Argument, "elapsed_ns: the %s event was not signalled and waited for",
                  event == &from ? "first" : "second");
  *out = 0;
  return {};
}

void NullDevice::destroy(Event& event) {
  delete static_cast<NullEvent*>(event.handle);
  event = {};
}

void NullDevice::destroy(Graph& graph) {
  delete static_cast<NullGraph*>(graph.handle);
  graph = {};
}

Status NullDevice::count_submit() {
  if (++submits_ == options_.fail_submit) lost_ = true;
  return usable();
}

}  // namespace

Status open_null_device(const NullOptions& options, Device** out) {
  *out = new NullDevice(options);
  return {};
}

}  // namespace greta
