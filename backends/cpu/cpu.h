// The CPU device: kernels are functions, memory is host memory, and a stream is a list of commands.
//
// submit() makes recorded commands ready, and wait() runs them. Each active worker walks the whole list and
// does an equal share of every command. So a step costs one start of the pool and one meeting of the workers
// for each barrier, and its bits do not depend on the number of threads.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/device.h"

// The same struct as in kernels/cpu/scratch.h, which a backend may not include. A test compares the two.
struct Scratch {
  uint8_t* data;
  uint64_t bytes;
};

namespace greta {

class CpuDevice;
struct CpuQueue;

constexpr uint32_t kCpuScratchBytes = 1 << 20;  // of each worker
constexpr uint32_t kCpuMaxThreads = 1024;

// What Buffer::handle points to.
struct CpuAllocation {
  uint64_t bytes = 0;  // of its whole pages
  enum Origin : uint8_t { Mapped, Hook, Imported, Shared } origin = Mapped;
};

// What Event::handle points to. Guarded by CpuDevice::order.
struct CpuEvent {
  uint64_t recorded = 0;   // signals that were recorded; the n-th has ticket n
  uint64_t signalled = 0;  // the highest ticket that was reached
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
  std::weak_ptr<CpuQueue> queue;    // WaitFor: the queue of the signal with that ticket
  const CpuGraph* graph = nullptr;  // Replay

  bool over() const { return event->signalled >= ticket; }  // of a WaitFor
};

// What Graph::handle points to.
struct CpuGraph {
  std::vector<CpuCommand> commands;
};

// The submitted work of a stream. The thread that waits runs it: the stream's own thread, or that of a stream
// that waits for one of its events. It is guarded by CpuDevice::order; but while `busy`, `running` and `next`
// belong to the thread that runs the work.
struct CpuQueue {
  explicit CpuQueue(CpuDevice& owner) : device(owner) {}
  CpuDevice& device;
  std::vector<CpuCommand> submitted, running;
  size_t next = 0;
  bool busy = false;         // a thread runs it
  bool on_pool = false;      // the workers are at it
  std::thread::id recorder;  // the thread whose stream this is

  bool has_work() const { return !submitted.empty() || next < running.size(); }

  // Returns when all submitted work is done, or the signal that `until` waits for has come. A wait that
  // cannot end is an error and leaves the queue as it is. `lock` holds CpuDevice::order.
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
  Status start();  // allocates the workers' scratch memory

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override { return memory_available_bytes(); }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override;
  Status share_host(void* pages, uint64_t bytes, Buffer* out) override;
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override;
  void unload(Kernel& kernel) override { kernel = {}; }
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override;
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override;
  Status host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) override;
  void destroy(Event& event) override;
  void destroy(Graph& graph) override;

  // Runs the commands on all workers and returns when they are done.
  void run(std::span<const CpuCommand> commands);

  std::mutex order;  // guards events and queues
  Unforked<std::condition_variable> changed;
  const Process process;  // the process that has its threads

 private:
  struct Place {  // the next command of a list, and of the graph that it replays
    size_t command = 0, in_graph = 0;
  };
  struct Turn;
  bool walk(std::span<const CpuCommand> commands, Turn& turn, Place* at, uint64_t* barriers,
            uint32_t worker) noexcept;
  void reach(const CpuCommand& signal) noexcept;

  DeviceInfo info_;
  HostAllocator allocator_;
  ThreadPool pool_;
  std::atomic<uint32_t> callers_ = 0;  // threads that run commands or wait for their turn
  uint8_t* scratch_ = nullptr;         // [workers][kCpuScratchBytes]
};

void describe_cpu(uint32_t features, uint32_t threads, DeviceInfo* out);

}  // namespace greta
