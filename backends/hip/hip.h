// The HIP device: memory known by address, kernels out of code objects, one HIP stream for each Stream.
//
// A HIP stream runs what it is given at once and in order, and a wait for an event concerns the event's last
// signal that the driver has seen. So a Stream keeps what is recorded as a list of commands until submit(),
// and the host holds a batch of commands back (runtime/held_queue.h). As a stream runs in order, barrier()
// has nothing to do.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/hip/card.h"
#include "backends/hip/faults.h"
#include "backends/hip/persistent.h"
#include "runtime/held_queue.h"

namespace greta {

class HipDevice;
struct HipEvent;
struct HipGraph;

// What Buffer::handle points to.
struct HipBuffer {
  void* pointer = nullptr;
  Memory memory = Memory::Device;
  bool imported = false;  // it consists of read-only host pages
};

// A code object that the driver has loaded. All kernels out of it share it.
struct HipModule {
  void* handle = nullptr;
  std::vector<uint8_t> object;  // the driver may read it as long as it is loaded
  std::string key;
  uint32_t users = 0;
};

// What Kernel::handle points to.
struct HipKernel {
  HipModule* module = nullptr;
  void* function = nullptr;
  const char* name = "";
  uint32_t threads = 1;            // of a group
  std::vector<uint32_t> appended;  // what a launch passes behind its block
};

constexpr uint64_t kHipMostImported = uint64_t(1) << 30;  // bytes of a hipHostRegister: of more some hang
constexpr uint32_t kHipBlockBytes = 256;  // of a kernel's arguments: the block and constants behind it

struct HipCommand {
  enum Kind : uint8_t { kLaunch, kCopy, kFill, kSignal, kWait, kReplay } kind;
  const HipKernel* kernel = nullptr;
  uint32_t groups[3] = {1, 1, 1};
  uint32_t block_bytes = 0;
  bool meets = false;  // a launch of a capture: a barrier stands before it
  alignas(16) uint8_t block[kHipBlockBytes];
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
  int direction = 0;  // of a copy
  uint32_t word = 0;  // of a fill
  std::shared_ptr<HipEvent> event;
  std::shared_ptr<HipGraph> graph;
};

// A stream of the driver. It is destroyed when the last Stream that uses it is gone.
struct HipDriverStream {
  explicit HipDriverStream(HipDevice& owner) : device(owner) {}
  ~HipDriverStream();
  HipDevice& device;
  void* handle = nullptr;
};

// How far a stream has come. All but the HIP stream itself is guarded by the queue's mutex.
struct HipTimeline : StreamProgress {
  explicit HipTimeline(HipDevice& owner) : device(owner) {}
  ~HipTimeline();
  HipDevice& device;
  std::shared_ptr<HipDriverStream> owned;
  void* stream = nullptr;  // of `owned`
  void* end = nullptr;     // the driver's event behind all that was given to it, if `marked`
  bool marked = false;
  std::vector<std::shared_ptr<HipGraph>> in_flight;  // replayed since the stream was last seen idle
  // The replay of a plan as one launch of which nobody knows yet that it was done, and what was given behind.
  std::vector<HipCommand> unsettled;
};

// The end of a batch.
struct HipPoint {
  std::shared_ptr<HipTimeline> timeline;
  uint64_t value = 0;
};

struct HipEvent {
  explicit HipEvent(HipDevice& owner) : device(owner) {}
  ~HipEvent();
  HipDevice& device;
  void* handle = nullptr;
  bool timed = false;
  HipPoint last;  // the last signal that was recorded; guarded by the queue
};

// The driver's graph of a capture, or the commands themselves where the driver refused to make one. The
// driver's graph is destroyed when no command and no stream with unfinished work refers to it.
struct HipGraph {
  explicit HipGraph(HipDevice& owner) : device(owner) {}
  ~HipGraph();
  HipDevice& device;
  void* handle = nullptr;
  std::vector<HipCommand> commands;
  std::unique_ptr<HipPersistent> persistent;  // where the plan can be one launch
  std::vector<HipCommand> counters;           // fills of what its launches leave 0
};

struct HipBatch {
  HipPoint done;  // reached at its end
  std::vector<HipCommand> commands;
  std::vector<HipPoint> waits;
  bool empty() const { return commands.empty() && waits.empty(); }
};

class HipQueue : public HeldQueue<HipBatch> {
 public:
  explicit HipQueue(HipDevice& device) : device_(device) {}

  Status submit(std::vector<HipBatch>& batches);              // leaves `batches` empty
  Status wait(const HipPoint& point, const HipEvent* event);  // for the event, or else for all of the stream
  void close(HipTimeline& timeline);                          // drops what is held back of a stream that ends
  Status capture(HipGraph& graph);                            // makes the driver's graph of its commands

  bool reached(const HipEvent& event);

 private:
  Status pump();
  Status mark_end(HipTimeline& timeline);
  Status run(const HipCommand& command, HipTimeline& timeline);
  int give(const HipCommand& command, HipTimeline& timeline, const char** call);
  int work(const HipCommand& command, void* stream, const char** call);  // a launch, copy or fill
  int make_graph(HipGraph& graph, const char** call);
  void make_persistent(HipGraph& graph);
  int launch_persistent(HipPersistent& plan, void* stream, const char** call);
  bool replay_persistent(const HipCommand& command, HipTimeline& timeline, int* error, const char** call);
  void give_up_persistent(const char* why);
  Status note_unsettled(const HipCommand& command, HipTimeline& timeline);
  Status settle(HipTimeline& timeline);
  Status conclude(HipTimeline& timeline);
  Status look_at_persistent(HipTimeline& timeline, bool* again);
  Status poll(void* event);
  template <class Call>
  int outside_captures(Call call);
  void forget_graphs(HipTimeline& timeline, uint64_t submitted);

  HipDevice& device_;
  bool warned_ = false;             // of a graph that was refused
  bool persistent_failed_ = false;  // plans are launches of their own from now on
};

class HipStream final : public Stream {
 public:
  explicit HipStream(HipDevice& device) : device_(device) {}
  ~HipStream() override;  // finishes what was submitted
  Status open();

  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override;
  Status copy(const Slice& to, const Slice& from) override;
  Status fill(const Slice& to, uint32_t word) override;
  Status barrier() override;
  Status signal(Event& event) override;
  Status wait_for(const Event& event) override;
  Status begin_capture() override;
  Status split() override;
  Status end_capture(Graph* out) override;
  Status replay(const Graph& graph) override;
  Status submit() override;
  Status wait() override;
  Status wait(const Event& event) override;
  void abandon() noexcept override;

 private:
  Status not_capturing(const char* what) const;
  HipCommand& add(HipCommand::Kind kind);
  void seal();  // ends the open batch
  void note_counters(std::span<const Access> accesses);

  HipDevice& device_;
  std::shared_ptr<HipTimeline> timeline_;
  uint64_t value_ = 0;             // of the last sealed batch
  std::vector<HipBatch> batches_;  // sealed and not submitted
  HipBatch open_;
  std::shared_ptr<HipGraph> capture_;
  bool meets_ = false;  // a barrier of the capture that no launch follows yet
};

class HipDevice final : public Device {
 public:
  explicit HipDevice(const HipLibrary& library) : hip(library), queue(*this) {}
  ~HipDevice() override { unload(persistent_); }
  Status open(uint32_t index, const DeviceOptions& options);

  const DeviceInfo& info() const override { return info_; }
  uint64_t memory_free() const override;
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override;
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override;
  void unload(Kernel& kernel) override;
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override;
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override;
  Status describe_code(const KernelCode& code, std::string* out) override;
  void destroy(Event& event) override;
  void destroy(Graph& graph) override;

  // Makes a status of the driver's answer to the call `what`, a literal. A lost device stays lost: the driver
  // is not called again, and every later failure names the first one.
  Status result(int error, const char* what);
  Status usable() const;
  // Whether the driver may be called to free something: not in a child of fork(), and not once the device is
  // lost, since such calls wait for work that never ends.
  bool may_free() const { return !hip.elsewhere() && usable_here(); }
  // Marks the device as lost. `by`, a literal, says what found that; the first one is kept.
  void lose(const char* by, int with);
  int index() const { return int(index_); }
  const Log& log() const { return log_; }
  uint64_t wait_limit_ns() const { return wait_limit_ns_; }
  bool makes_graphs() const { return makes_graphs_; }  // of captures; else replays give their commands
  Status driver_stream(std::shared_ptr<HipDriverStream>* out);
  const HipProperties& properties() const { return *properties_; }
  // The kernel for plans as one launch, and how many groups of it stay on the device at once; 0: no plan is.
  const HipKernel& persistent_kernel() const { return *static_cast<const HipKernel*>(persistent_.handle); }
  uint32_t persistent_groups() const { return persistent_groups_; }

  const HipLibrary& hip;
  HipQueue queue;

 private:
  bool usable_here() const { return !lost_by_ && hip_fault_count() == faults_before_; }
  Status allocate_memory(uint64_t bytes, Memory memory, HipBuffer* out, uint64_t* address);
  void free_memory(const HipBuffer& buffer);
  Status read_module(const KernelCode& code, HipModule* out);
  Status load_module(const KernelCode& code, HipModule** out);
  Status refuse_code(const KernelCode& code, int error);
  Status check_shared(const HipKernel& kernel) const;
  void choose_graphs(Graphs wanted);
  void release_module(HipModule& module);
  Status open_persistent();

  DeviceInfo info_;
  std::unique_ptr<HipProperties> properties_;
  HipCard card_;
  uint32_t index_ = 0;
  uint64_t wait_limit_ns_ = 0;
  bool makes_graphs_ = false;
  // All Streams of a device share a HIP stream where an idle one costs power.
  bool shares_stream_ = false;
  std::mutex stream_mutex_;
  std::weak_ptr<HipDriverStream> shared_stream_;
  uint32_t faults_before_ = 0;  // of the process, when the device was opened
  Log log_;
  std::string system_root_;                    // where /sys and /dev are
  std::atomic<const char*> lost_by_{nullptr};  // what found that the device is lost; null while it is not
  std::atomic<int> lost_with_{kHipSuccess};
  std::mutex modules_mutex_;
  std::map<std::string, std::unique_ptr<HipModule>> modules_;
  Kernel persistent_;
  uint32_t persistent_groups_ = 0;
};

// Asks the driver what a device is. Fails with the reason if GRETA cannot use it; what is known is filled in.
Status hip_inspect(const HipLibrary& hip, uint32_t index, const SystemView& system, HipProperties* properties,
                   HipCard* card, DeviceInfo* out);

}  // namespace greta
