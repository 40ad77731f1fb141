// The CPU as a device: kernels are functions, memory is host memory, a stream is a list of commands
// that the device's threads walk together.
//
// submit() makes recorded commands ready, wait() runs them. Each worker walks the whole list and does
// its fixed share of every command, so a step costs one start of the pool and one meeting for each
// barrier, and the same bits come out whatever the number of threads.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/device.h"

// As kernels/cpu/scratch.h defines it, which a backend may not include; a test compares the two.
struct Scratch {
  uint8_t* data;
  uint64_t bytes;
};

namespace greta {

class CpuDevice;
struct CpuQueue;

constexpr uint32_t kCpuScratchBytes = 1 << 20;  // of a worker
constexpr uint32_t kCpuMaxThreads = 1024;

// Behind Buffer::handle.
struct CpuAllocation {
  uint64_t bytes = 0;  // mapped, whole pages
  enum Origin : uint8_t { Mapped, Hook, Imported } origin = Mapped;
};

// Behind Event::handle. Guarded by CpuDevice::order.
struct CpuEvent {
  uint64_t recorded = 0;   // signals recorded so far; the n-th has ticket n
  uint64_t signalled = 0;  // highest ticket that was reached
  uint64_t time_ns = 0;
  std::weak_ptr<CpuQueue> queue;  // where the last signal was recorded
};

struct CpuGraph;

struct CpuCommand {
  enum Kind : uint8_t { Dispatch, Copy, Fill, Barrier, Signal, WaitFor, Replay };
  Kind kind = Barrier;
  uint32_t groups = 0;  // Dispatch
  HostFunction function = nullptr;
  alignas(16) uint8_t block[kMaxBlockBytes];
  uint8_t* to = nullptr;  // Copy, Fill
  const uint8_t* from = nullptr;
  uint64_t bytes = 0;
  uint32_t word = 0;
  CpuEvent* event = nullptr;  // Signal, WaitFor
  uint64_t ticket = 0;
  std::weak_ptr<CpuQueue> queue;    // WaitFor: where the signal with that ticket is
  const CpuGraph* graph = nullptr;  // Replay

  bool over() const { return event->signalled >= ticket; }  // of a WaitFor
};

// Behind Graph::handle.
struct CpuGraph {
  std::vector<CpuCommand> commands;
};

// Submitted work of a stream. Whoever waits runs it: the stream's own thread, or the thread of a
// stream that waits for one of its events. Guarded by CpuDevice::order, but for `running` and
// `next`, which belong to the runner while `busy`.
struct CpuQueue {
  explicit CpuQueue(CpuDevice& owner) : device(owner) {}
  CpuDevice& device;
  std::vector<CpuCommand> submitted, running;
  size_t next = 0;
  bool busy = false, on_pool = false;
  std::thread::id recorder;  // the thread whose stream this is

  bool has_work() const { return !submitted.empty() || next < running.size(); }

  // Returns when all that was submitted is done, or the signal that `until` waits for has come. A wait
  // that cannot end is an error that leaves the queue where it stands. Called and left with `lock` (on
  // CpuDevice::order) held.
  Status run(std::unique_lock<std::mutex>& lock, const CpuCommand* until = nullptr);

 private:
  Status await(const CpuCommand& command, std::unique_lock<std::mutex>& lock);
};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(CpuDevice& device) : device_(device), queue_(std::make_shared<CpuQueue>(device)) {}
  ~CpuStream() override;  // runs what was submitted

  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override;
  Status copy(const Slice& to, const Slice& from) override;
  Status fill(const Slice& to, uint32_t word) override;
  Status barrier() override;
  Status signal(Event& event) override;
  Status wait_for(const Event& event) override;
  Status begin_capture() override;
  Status split() override { return {}; }
  Status end_capture(Graph* out) override;
  Status replay(const Graph& graph) override;
  Status submit() override;
  Status wait() override;
  Status wait(const Event& event) override;
  void abandon() noexcept override;

 private:
  Status not_capturing(const char* what) const;
  CpuCommand& record(CpuCommand::Kind kind);

  CpuDevice& device_;
  std::shared_ptr<CpuQueue> queue_;
  std::vector<CpuCommand> recorded_;
  std::unique_ptr<CpuGraph> capture_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(const DeviceOptions& options, uint32_t threads);
  ~CpuDevice() override;
  Status start();  // takes the workers' scratch memory

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return memory_available_bytes(); }
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

  // Runs the commands on all workers and returns when they are done.
  void run(std::span<const CpuCommand> commands);

  std::mutex order;  // guards events and queues
  Unforked<std::condition_variable> changed;
  const Process process;  // whose threads it has

 private:
  void walk(std::span<const CpuCommand> commands, uint32_t worker) noexcept;
  void reach(const CpuCommand& signal) noexcept;

  DeviceInfo info_;
  HostAllocator allocator_;
  ThreadPool pool_;
  uint8_t* scratch_ = nullptr;  // [workers][kCpuScratchBytes]
};

void describe_cpu(const DeviceOptions& options, uint32_t threads, DeviceInfo* out);

}  // namespace greta
