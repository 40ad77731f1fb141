// The objects behind the handles of greta_compute.h.
//
// A handle is a number that is looked up in its compute's table, so that one that was closed is found out.
// The table shares its objects with the streams that use them: what is closed meanwhile lives on until these
// streams have been waited for.
#pragma once
#include <unordered_map>

#include "api/compute/recipes.h"
#include "api/handles.h"
#include "graph/hazards.h"
#include "greta_compute.h"
#include "runtime/heap.h"
#include "runtime/sharing.h"

namespace greta {

struct Object {
  enum class Kind : uint8_t { Buffer, Stream, Timeline, Graph, Step, Kernel, count };
  explicit Object(Kind of) : kind(of) {}
  virtual ~Object() = default;
  const Kind kind;
  uint64_t number = 0;  // of its handle
};

// A kind of memory of a compute, by greta_memory.
constexpr uint32_t kMemoryKinds = GRETA_MEMORY_READBACK + 1;

// What all buffers of a compute come from. It is thread-safe.
class Memories {
 public:
  Memories(RuntimeDevice& on, uint64_t limit);
  Status take(greta_memory memory, uint64_t bytes, Slice* out);
  void give_back(greta_memory memory, const Slice& slice) noexcept;
  // Memory that others may import, which is a buffer of its own.
  Status take_shared(uint64_t bytes, Buffer* out);
  // Gives back such memory, which was counted, or what was adopted.
  void give_back(Buffer& buffer, bool counted) noexcept;
  uint64_t allocated() const;
  uint64_t peak() const;
  uint64_t room(greta_memory memory) const;  // that may still be allocated

 private:
  void count() noexcept;

  RuntimeDevice& on_;
  const uint64_t limit_;      // 0: none
  mutable std::mutex mutex_;  // held from the look at the room until what is allocated is counted
  Heap heaps_[kMemoryKinds];  // by greta_memory
  std::atomic<uint64_t> shared_ = 0;
  Counted counted_;           // memory of the device
  std::atomic<uint64_t> peak_ = 0;
};

struct BufferObject final : Object {
  BufferObject(Memories& from, greta_memory kind) : Object(Kind::Buffer), memories(from), memory(kind) {}
  ~BufferObject() override {
    if (own.handle)
      memories.give_back(own, shared);
    else if (slice.buffer && !graph)
      memories.give_back(memory, slice);
  }
  Memories& memories;
  greta_memory memory;
  Slice slice;
  Buffer own;           // memory that comes from no pool: it is adopted, or shared with others
  bool shared = false;  // it can be exported, and is counted as allocated
  uint64_t graph = 0;   // of a slot or a temporary: the graph's serial number; such slices stand for memory
};

class GraphObject;
class StepObject;
class KernelObject;

struct TimelineObject;

// What a stream has recorded since its last submit.
struct Pending {
  uint32_t launches = 0;
  uint64_t bytes = 0, flops = 0;
  void add(const Cost& cost, uint32_t of = 1) {
    launches += of;
    bytes += cost.bytes;
    flops += cost.flops;
  }
};

struct StreamObject final : Object {
  explicit StreamObject(const Spans& of_runtime) : Object(Kind::Stream), spans(of_runtime) {}
  ~StreamObject() override;  // waits for what was submitted

  // Fails while a graph is recorded, where `what` is no part of graphs.
  Status not_recording(const char* what) const;
  // Fails where the buffer is a slot or a temporary of another graph than the one that is being recorded.
  Status can_use(const BufferObject& buffer) const;
  // Records a barrier if work with these accesses needs one.
  Status order(std::span<const Access> accesses);
  Status dispatch(const Launch& launch);
  Status submit();
  Status wait();
  // What is recorded now uses the object.
  void use(const std::shared_ptr<Object>& object) { used.try_emplace(object.get(), object); }

  // The counters by which groups of a launch find out that they are the last, all 0.
  Status need_counters(greta_compute& compute, Slice* out);

  const Spans& spans;
  std::unordered_map<const Object*, std::shared_ptr<Object>> used;  // since the last wait
  std::unique_ptr<BufferObject> counters;
  std::shared_ptr<GraphObject> graph;                  // that is being recorded
  std::shared_ptr<StepObject> step;                    // that operations run over; null: over their tensors
  std::vector<std::weak_ptr<TimelineObject>> signals;  // timelines that this stream signals
  std::unique_ptr<Stream> stream;  // declared later, since it is destroyed before what it uses
  Hazards hazards;
  std::vector<Call> calls;        // of the launch that is being made
  Pending pending;
  uint64_t forgets = 0;           // how often recorded work was forgotten
  std::atomic<bool> busy{false};  // a thread is in a call with it
};

struct TimelineObject final : Object {
  explicit TimelineObject(Device& of, bool with_times)
      : Object(Kind::Timeline), device(of), timed(with_times) {}
  ~TimelineObject() override;
  bool outside() const { return shared.handle != nullptr; }
  SharingDevice* sharing = nullptr;  // of `shared`
  SharedTimeline shared;             // others know its value too; no events are kept then
  bool exports = false;              // it can be exported

  Status signal(StreamObject& stream, uint64_t value);
  Status wait_for(StreamObject& stream, uint64_t value);
  Status wait(uint64_t value, const Spans& spans);
  Status elapsed(uint64_t from, uint64_t to, uint64_t* out_ns);
  // A stream has done all that was submitted, or is closed. It counts only if it signals this timeline.
  void all_done(uint64_t stream, bool closed);

 private:
  struct Signal {
    uint64_t value = 0;
    Event event;
  };
  Status signal_outside(StreamObject& stream, uint64_t value);
  Signal& at(uint64_t index) { return ring_[index % GRETA_TIMELINE_SIGNALS]; }
  uint64_t kept_from() const { return count_ - std::min<uint64_t>(count_, GRETA_TIMELINE_SIGNALS); }
  Status find(uint64_t value, uint64_t* index);

  Device& device;
  const bool timed;
  std::mutex waiting_;  // held while a host waits
  std::unique_ptr<Stream> waiter_;
  std::mutex mutex_;  // of what follows
  Signal ring_[GRETA_TIMELINE_SIGNALS];
  uint64_t last_outside_ = 0;  // that was signalled to `shared`
  uint64_t count_ = 0, done_ = 0;  // signals so far, and how many of them the host has waited for
  uint64_t signaller_ = 0;         // the number of the stream
};

// A kernel of the caller.
class KernelObject final : public Object {
 public:
  explicit KernelObject(Device& device) : Object(Kind::Kernel), device_(device) {}
  ~KernelObject() override;
  Status open(const greta_kernel_code& options);
  greta::Kernel kernel;
  std::vector<uint8_t> packed;  // its code, until it is loaded

 private:
  Device& device_;
  std::string name_;
  uint32_t threads_ = 0;
};

// The open objects of a compute, by the number in their handle. A number is a place in the table and the
// generation of the place, and comes once.
class ObjectTable {
 public:
  Status add(const std::shared_ptr<Object>& object);
  // Finds an object of this kind. Fails with Code::Argument where there is none.
  Status find(uint64_t number, Object::Kind kind, std::shared_ptr<Object>* out) const;
  Status remove(uint64_t number, Object::Kind kind, std::shared_ptr<Object>* out);
  void clear();
  uint32_t count(Object::Kind kind) const { return counts_[uint32_t(kind)]; }

 private:
  struct Place {
    std::shared_ptr<Object> object;
    uint32_t generation = 1;
  };
  const Place* place_of(uint64_t number, Object::Kind kind) const;
  std::vector<Place> places_;
  std::vector<uint32_t> free_;
  uint32_t counts_[uint32_t(Object::Kind::count)] = {};
};

}  // namespace greta

struct greta_compute {
  greta_compute(greta_runtime& of, RuntimeDevice& device, uint64_t limit,
                std::unique_ptr<RuntimeDevice> adopted = nullptr);
  ~greta_compute();

  greta::Device& device() const { return *on.device; }
  // Find what a handle stands for.
  greta::Status find(greta_buffer handle, std::shared_ptr<greta::BufferObject>* out) const;
  greta::Status find(greta_stream handle, std::shared_ptr<greta::StreamObject>* out) const;
  greta::Status find(greta_timeline handle, std::shared_ptr<greta::TimelineObject>* out) const;
  greta::Status find(greta_graph handle, std::shared_ptr<greta::GraphObject>* out) const;
  greta::Status find(greta_step handle, std::shared_ptr<greta::StepObject>* out) const;
  greta::Status find(greta_kernel handle, std::shared_ptr<greta::KernelObject>* out) const;
  // Opens and closes handles.
  template <class Handle>
  greta::Status add(const std::shared_ptr<greta::Object>& object, Handle* out) {
    const std::lock_guard<std::mutex> lock(mutex);
    GRETA_TRY(table.add(object));
    *out = {owner, object->number};
    return {};
  }
  // Takes an object out of the table. Nothing was opened as {0}, and *out is then null.
  greta::Status remove(uint64_t owner_of_handle, uint64_t number, greta::Object::Kind kind,
                       std::shared_ptr<greta::Object>* out);

  greta_runtime& runtime;
  std::unique_ptr<RuntimeDevice> own;  // a device of the host's; null: one of the runtime's
  RuntimeDevice& on;
  const uint64_t owner;  // of its handles: no other compute has the same
  greta::Memories memories;
  greta::Recipes recipes;
  mutable std::mutex mutex;  // of the table and of buffer_bytes
  greta::ObjectTable table;
  uint64_t buffer_bytes = 0;
  std::atomic<uint64_t> graphs{0};  // that were begun: their serial numbers

  // Copies between memory that the host does not see and the program, a piece at a time.
  struct Transfer {
    static constexpr uint64_t kPieceBytes = 1 << 20;
    std::mutex mutex;
    greta::DeviceMemory pieces[2];  // for upload and readback
    std::unique_ptr<greta::Stream> stream;
  } transfer;
};

namespace greta {

inline Status need_device(const greta_compute* compute) {
  GRETA_TRY(need(compute, "compute"));
  return compute->runtime.process.check();
}

// Fails with Code::Unsupported where the device shares nothing with others.
Status sharing_of(Device& device, SharingDevice** out);

// Bytes [offset, offset + bytes) of a buffer. Fails with Code::Argument if they are not inside.
Status slice_of(const BufferObject& buffer, const char* role, uint64_t offset, uint64_t bytes, Slice* out);

// Opens its handle.
Status add_buffer(greta_compute& compute, const std::shared_ptr<BufferObject>& buffer, greta_buffer* out);

// Copies bytes to memory of the device, and waits.
Status upload_once(Device& device, const Slice& to, const std::vector<uint8_t>& bytes);

// Finds the stream and runs body(StreamObject&) -> Status as its only user.
template <class Body>
Status on_stream(const greta_compute& compute, greta_stream handle, Body&& body) {
  std::shared_ptr<StreamObject> stream;
  GRETA_TRY(compute.find(handle, &stream));
  struct Turn {
    std::atomic<bool>& busy;
    const bool mine;
    explicit Turn(std::atomic<bool>& of) : busy(of), mine(!of.exchange(true)) {}
    ~Turn() {
      if (mine) busy = false;
    }
  } turn(stream->busy);
  if (!turn.mine) return fail(Code::Argument, "the stream is in use by another thread");
  return body(*stream);
}

// Records by body() -> Status what was checked before. If it fails or throws, the stream forgets all that it
// has not submitted, since a part of the call may be among it.
template <class Body>
Status recorded(StreamObject& stream, Body&& body) {
  Recording recording(*stream.stream);
  struct Forgotten {
    StreamObject* stream;
    ~Forgotten() {
      if (stream) stream->hazards.all(), ++stream->forgets;
    }
  } forgotten{&stream};
  GRETA_TRY(within(guarded(body), "what the stream recorded since its last submit is forgotten"));
  recording.keep();
  forgotten.stream = nullptr;
  return {};
}

}  // namespace greta
