// A graph of greta_compute.h: a plan of GretaGraph over buffers, temporaries and slots.
#pragma once
#include "api/compute/fusing.h"
#include "api/compute/step.h"

namespace greta {

class GraphObject final : public Object {
 public:
  GraphObject(greta_compute& compute, uint64_t serial_number);

  // While it is recorded.

  // Adds calls, which use these buffers.
  void add(std::span<const std::shared_ptr<BufferObject>> buffers, std::vector<GraphCall>&& calls);
  // Gives a call that wants working memory some of the graph's.
  void give_scratch(GraphCall& to) { greta::give_scratch(to.call, to.bucket, plan_); }
  // Working memory of a call.
  Slice temporary(uint64_t bytes) {
    const Slice made = plan_.temporary(bytes);
    temporaries_ = made.buffer;
    return made;
  }
  Status copy(const Slice& to, const Slice& from, const std::shared_ptr<BufferObject>& target,
              const std::shared_ptr<BufferObject>& source);
  Status need_counters(greta_compute& compute, Slice* out);
  Status can_hold(const Slice& weight) const;  // fails where it is a temporary
  std::shared_ptr<BufferObject> make_temporary(greta_compute& compute, uint64_t bytes);
  std::shared_ptr<BufferObject> make_slot(greta_compute& compute, uint64_t bytes);
  // Plans it, and captures it on the stream where it has no slots.
  Status finish(greta_compute& compute, StreamObject& stream);

  // When it is complete.

  // Lets it run on this stream. Fails while another one, which is open, is its stream.
  Status take_stream(const greta_compute& compute, const StreamObject& stream);
  Status run(greta_compute& compute, StreamObject& stream,
             std::span<const greta_graph_binding> bindings) const;
  greta_graph_info info() const;
  std::string text() const;

  const uint64_t serial;
  std::vector<std::shared_ptr<StepObject>> draws;  // the step of each call that draws tokens
  // The handles that it gave out, to be closed.
  std::vector<uint64_t> temporary_handles, slot_handles;

 private:
  struct Slot {
    std::shared_ptr<BufferObject> buffer;
    Access::Mode mode = Access::kRead;
  };
  uint32_t slot_of(const Slice& slice) const;  // slots_.size() where it is in none
  Status plan_calls();
  void note_uses();
  Status bind(const greta_compute& compute, std::span<const greta_graph_binding> bindings,
              StreamObject& stream, std::vector<Slice>* out) const;
  Status check_apart(std::span<const Slice> bound) const;
  Slice actual(const Slice& slice, std::span<const Slice> bound) const;
  Status record(StreamObject& stream, std::span<const Slice> bound) const;

  Device& device_;
  std::mutex mutex_;
  uint64_t stream_ = 0;  // the number of the one that it runs on
  std::unordered_map<const Object*, std::shared_ptr<BufferObject>> uses_;
  std::unique_ptr<BufferObject> counters_, arena_;
  Buffer stand_in_;  // for what slots will be bound to
  std::vector<Slot> slots_;
  std::vector<Access> real_;             // what it touches beside slots and its own memory
  std::vector<GraphCall> calls_;         // while it is recorded
  const Buffer* temporaries_ = nullptr;  // stands for their memory
  bool captured_ = false;
  Pending work_;  // of a run
  GretaGraph plan_;  // declared last, since it is destroyed before what it uses
};

// Drops the graph that the stream records, if any, and closes its handles.
void drop_graph(greta_compute& compute, StreamObject& stream) noexcept;

}  // namespace greta
