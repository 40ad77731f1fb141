// The functions of greta_compute.h for graphs.
#include "api/compute/graphs.h"

#include "api/compute/tensors.h"

using namespace greta;

namespace greta {

namespace {
constexpr uint64_t kSlotBytes = uint64_t(1) << 40;  // a slot's place in the buffer that stands for all
}

GraphObject::GraphObject(greta_compute& compute, uint64_t serial_number)
    : Object(Kind::Graph),
      serial(serial_number),
      device_(compute.device()),
      plan_(compute.recipes.filter()) {}

Status GraphObject::copy(const Slice& to, const Slice& from, const std::shared_ptr<BufferObject>& target,
                         const std::shared_ptr<BufferObject>& source) {
  const std::shared_ptr<BufferObject> buffers[] = {target, source};
  std::vector<GraphCall> copies(1);
  copies[0].to = to, copies[0].from = from;
  add(buffers, std::move(copies));
  return {};
}

void GraphObject::add(std::span<const std::shared_ptr<BufferObject>> buffers,
                      std::vector<GraphCall>&& calls) {
  calls_.reserve(calls_.size() + calls.size());
  for (const std::shared_ptr<BufferObject>& buffer : buffers) uses_.try_emplace(buffer.get(), buffer);
  calls_.insert(calls_.end(), calls.begin(), calls.end());
}

Status GraphObject::plan_calls() {
  if (calls_.empty()) return fail(Code::Argument, "nothing was recorded into the graph");
  GRETA_TRY(Fusing(calls_, [&](const Slice& slice) {
              return slice.buffer && slice.buffer == temporaries_;
            }).add_to(plan_));
  calls_ = {};
  return plan_.finish();
}

Status GraphObject::need_counters(greta_compute& compute, Slice* out) {
  if (!counters_) {
    auto made = std::make_unique<BufferObject>(compute.memories, GRETA_MEMORY_DEVICE);
    GRETA_TRY(compute.memories.take(GRETA_MEMORY_DEVICE, kCounterCount * sizeof(uint32_t), &made->slice));
    counters_ = std::move(made);
  }
  *out = counters_->slice;
  return {};
}

// The planner gives temporaries their addresses where calls have operands, and not where they have weights.
Status GraphObject::can_hold(const Slice& weight) const {
  for (const auto& [object, buffer] : uses_)
    if (buffer->graph && slot_of(buffer->slice) == slots_.size() && buffer->slice.buffer == weight.buffer)
      return fail(Code::Unsupported, "weights and gains cannot be temporaries of a graph");
  return {};
}

std::shared_ptr<BufferObject> GraphObject::make_temporary(greta_compute& compute, uint64_t bytes) {
  auto made = std::make_shared<BufferObject>(compute.memories, GRETA_MEMORY_DEVICE);
  made->graph = serial;
  made->slice = plan_.temporary(bytes);
  temporaries_ = made->slice.buffer;
  uses_.try_emplace(made.get(), made);
  return made;
}

std::shared_ptr<BufferObject> GraphObject::make_slot(greta_compute& compute, uint64_t bytes) {
  auto made = std::make_shared<BufferObject>(compute.memories, GRETA_MEMORY_DEVICE);
  made->graph = serial;
  made->slice = {&stand_in_, slots_.size() * kSlotBytes, bytes};
  slots_.push_back({made});
  return made;
}

uint32_t GraphObject::slot_of(const Slice& slice) const {
  return slice.buffer == &stand_in_ ? uint32_t(slice.offset / kSlotBytes) : uint32_t(slots_.size());
}

// What slots are used for, and what else the graph touches.
void GraphObject::note_uses() {
  const auto own = [&](const Slice& slice) {
    return (arena_ && overlaps(slice, arena_->slice)) || (counters_ && overlaps(slice, counters_->slice));
  };
  for (const GretaGraph::Command& command : plan_.commands())
    for (uint32_t a = 0; a < command.launch.access_count; ++a) {
      const Access& access = command.launch.accesses[a];
      const uint32_t slot = slot_of(access.slice);
      if (slot < slots_.size())
        slots_[slot].mode = Access::Mode(slots_[slot].mode | access.mode);
      else if (!own(access.slice) && std::none_of(real_.begin(), real_.end(), [&](const Access& other) {
                 return other.slice == access.slice && other.mode == access.mode;
               }))
        real_.push_back(access);
    }
}

Status GraphObject::finish(greta_compute& compute, StreamObject& on) {
  const Span span(compute.runtime.spans, SpanKind::Plan, "plan");
  GRETA_TRY(plan_calls());
  Slice arena;
  if (const uint64_t bytes = plan_.arena_bytes()) {
    auto made = std::make_unique<BufferObject>(compute.memories, GRETA_MEMORY_DEVICE);
    GRETA_TRY(compute.memories.take(GRETA_MEMORY_DEVICE, bytes, &made->slice));
    arena_ = std::move(made);
    arena = arena_->slice;
  }
  GRETA_TRY(compute.recipes.bind(plan_, arena));
  for (const GretaGraph::Command& command : plan_.commands())
    if (command.row) work_.add(command.cost(command.bucket, command.bucket, 0));
  note_uses();
  GRETA_TRY(recorded(on, [&]() -> Status {
    on.hazards.all();
    if (counters_) GRETA_TRY(on.stream->barrier());
    if (counters_) GRETA_TRY(on.stream->fill(counters_->slice, 0));
    return on.submit();
  }));
  stream_ = on.number;
  if (slots_.empty()) {
    GRETA_TRY(plan_.capture(*on.stream, device_));
    captured_ = true;
  }
  return {};
}

// The temporaries are there once, so two runs at the same time would disturb each other.
Status GraphObject::take_stream(const greta_compute& compute, const StreamObject& on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (on.number == stream_) return {};
  std::shared_ptr<StreamObject> other;
  if (compute.find(greta_stream{compute.owner, stream_}, &other).ok())
    return fail(Code::Argument, "run: the graph runs on stream %llx, not on stream %llx",
                (unsigned long long)stream_, (unsigned long long)on.number);
  stream_ = on.number;
  return {};
}

// Finds what each slot is bound to.
Status GraphObject::bind(const greta_compute& compute, std::span<const greta_graph_binding> bindings,
                         StreamObject& on, std::vector<Slice>* out) const {
  for (const greta_graph_binding& binding : bindings) {
    const auto is_it = [&](const Slot& slot) {
      return slot.buffer->number == binding.slot.number && binding.slot.owner == compute.owner;
    };
    const size_t s = size_t(std::find_if(slots_.begin(), slots_.end(), is_it) - slots_.begin());
    if (s == slots_.size())
      return fail(Code::Argument, "run: %llx is no slot of the graph",
                  (unsigned long long)binding.slot.number);
    if ((*out)[s].buffer)
      return fail(Code::Argument, "run: slot %llx is bound twice", (unsigned long long)binding.slot.number);
    std::shared_ptr<BufferObject> buffer;
    GRETA_TRY(within(compute.find(binding.buffer, &buffer), "run: slot %llx",
                     (unsigned long long)binding.slot.number));
    GRETA_TRY(on.can_use(*buffer));
    if (binding.offset % kWeightAlignment)
      return fail(Code::Argument, "run: the offset %llu is no multiple of %llu",
                  (unsigned long long)binding.offset, (unsigned long long)kWeightAlignment);
    GRETA_TRY(slice_of(*buffer, "slot", binding.offset, slots_[s].buffer->slice.bytes, &(*out)[s]));
    on.use(buffer);
  }
  for (size_t s = 0; s < slots_.size(); ++s)
    if (!(*out)[s].buffer)
      return fail(Code::Argument, "run: slot %llx is not bound, %zu of %zu are",
                  (unsigned long long)slots_[s].buffer->number, bindings.size(), slots_.size());
  return check_apart(*out);
}

// The barriers were found without knowing what slots would be bound to.
Status GraphObject::check_apart(std::span<const Slice> bound) const {
  for (size_t s = 0; s < bound.size(); ++s) {
    const Access own = {bound[s], slots_[s].mode};
    for (size_t other = 0; other < s; ++other)
      if (conflicts(own, {bound[other], slots_[other].mode}))
        return fail(Code::Argument,
                    "run: slots %zu and %zu are bound to overlapping memory, which is written", other, s);
    for (const Access& real : real_)
      if (conflicts(own, real))
        return fail(Code::Argument, "run: slot %zu is bound to memory that the graph also uses by itself", s);
  }
  return {};
}

Slice GraphObject::actual(const Slice& slice, std::span<const Slice> bound) const {
  const uint32_t slot = slot_of(slice);
  if (slot == slots_.size()) return slice;
  return {bound[slot].buffer, bound[slot].offset + slice.offset % kSlotBytes, slice.bytes};
}

Status GraphObject::record(StreamObject& on, std::span<const Slice> bound) const {
  Launch launch;
  for (const GretaGraph::Command& command : plan_.commands()) {
    if (command.split_before) GRETA_TRY(on.submit());
    if (command.barrier_before) GRETA_TRY(on.stream->barrier());
    if (command.calls.empty()) {
      GRETA_TRY(on.stream->copy(actual(command.to, bound), actual(command.from, bound)));
      continue;
    }
    on.calls.assign(command.calls.begin(), command.calls.end());
    for (Call& call : on.calls) {
      for (Slice& slice : call.slot) slice = actual(slice, bound);
      call.weight.slice = actual(call.weight.slice, bound);
    }
    make_launch(on.calls, *command.row, command.bucket, &device_.info(), &launch);
    GRETA_TRY(on.stream->dispatch(*command.launch.kernel, launch.groups, launch.arguments(),
                                  {launch.accesses, launch.access_count}));
  }
  return {};
}

Status GraphObject::run(greta_compute& compute, StreamObject& on,
                        std::span<const greta_graph_binding> bindings) const {
  std::vector<Slice> bound(slots_.size());
  GRETA_TRY(bind(compute, bindings, on, &bound));
  for (const auto& step : draws) GRETA_TRY(step->draw(on));
  return recorded(on, [&]() -> Status {
    GRETA_TRY(captured_ ? plan_.run(*on.stream) : record(on, bound));
    on.pending.add({work_.bytes, work_.flops}, work_.launches);
    on.hazards.all();
    return {};
  });
}

greta_graph_info GraphObject::info() const {
  greta_graph_info info = {};
  for (const GretaGraph::Command& command : plan_.commands()) ++(command.row ? info.launches : info.copies);
  info.barriers = plan_.barriers();
  info.slots = uint32_t(slots_.size());
  info.captured = captured_;
  info.temporary_bytes = plan_.arena_bytes();
  return info;
}

std::string GraphObject::text() const {
  std::string text;
  char line[256];
  const auto add = [&](const char* format, auto... values) {
    format_text(line, sizeof line, format, values...);
    text += line;
  };
  for (const GretaGraph::Command& command : plan_.commands()) {
    if (command.barrier_before) text += "barrier\n";
    if (!command.row) {
      add("copy %llu bytes\n", (unsigned long long)command.to.bytes);
      continue;
    }
    add("%s:", command.row->name);
    for (const Call& call : command.calls) add(" %s", op_name(call.op));
    const Tensor& weight = lead_call(command.calls).weight;
    if (weight.n) add(" %s[%u][%u]", quant_info(weight.type).name, weight.n, weight.depth);
    add(", %u rows, %u x %u x %u groups\n", command.bucket, command.launch.groups[0],
        command.launch.groups[1], command.launch.groups[2]);
  }
  return text;
}

// Closes buffers that a graph gave out.
static void close_handles(greta_compute& compute, std::vector<uint64_t>* handles) {
  for (const uint64_t number : *handles) {
    std::shared_ptr<Object> object;
    (void)compute.remove(compute.owner, number, Object::Kind::Buffer, &object);
  }
  handles->clear();
}

void drop_graph(greta_compute& compute, StreamObject& stream) noexcept {
  const std::shared_ptr<GraphObject> graph = std::move(stream.graph);
  if (!graph) return;
  close_handles(compute, &graph->temporary_handles);
  close_handles(compute, &graph->slot_handles);
}

}  // namespace greta

greta_status greta_graph_begin(greta_compute* compute, greta_stream handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      GRETA_TRY(stream.not_recording("graph"));
      stream.graph = std::make_shared<GraphObject>(*compute, ++compute->graphs);
      return {};
    });
  });
}

// Gives the graph of the stream a buffer, by make(GraphObject&), whose handle goes into `handles`.
template <class Make>
static greta_status give_part(greta_compute* compute, greta_stream handle, uint64_t bytes, greta_buffer* out,
                              std::vector<uint64_t> GraphObject::* handles, Make&& make) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out, "out_buffer"));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      const uint64_t most = arena_limit(compute->device().info());
      if (!stream.graph) return fail(Code::Argument, "no graph is being recorded on the stream");
      if (!bytes || bytes > most)
        return fail(Code::Argument, "a buffer of %llu bytes, from 1 to %llu are allowed",
                    (unsigned long long)bytes, (unsigned long long)most);
      GraphObject& graph = *stream.graph;
      (graph.*handles).reserve((graph.*handles).size() + 1);
      const std::shared_ptr<BufferObject> made = make(graph);
      GRETA_TRY(compute->add(made, out));
      (graph.*handles).push_back(made->number);
      return {};
    });
  });
}

greta_status greta_graph_temporary(greta_compute* compute, greta_stream stream, uint64_t bytes,
                                   greta_buffer* out_buffer) {
  return give_part(compute, stream, bytes, out_buffer, &GraphObject::temporary_handles,
                   [&](GraphObject& graph) { return graph.make_temporary(*compute, bytes); });
}

greta_status greta_graph_slot(greta_compute* compute, greta_stream stream, uint64_t bytes,
                              greta_buffer* out_slot) {
  return give_part(compute, stream, bytes, out_slot, &GraphObject::slot_handles,
                   [&](GraphObject& graph) { return graph.make_slot(*compute, bytes); });
}

greta_status greta_graph_end(greta_compute* compute, greta_stream handle, greta_graph* out_graph) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_graph, "out_graph"));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      if (!stream.graph) return fail(Code::Argument, "no graph is being recorded on the stream");
      const std::shared_ptr<GraphObject> graph = stream.graph;
      Status status = guarded([&] { return graph->finish(*compute, stream); });
      if (status.ok()) status = guarded([&] { return compute->add(graph, out_graph); });
      if (!status.ok()) {
        drop_graph(*compute, stream);
        return status;
      }
      stream.graph.reset();
      close_handles(*compute, &graph->temporary_handles);
      return {};
    });
  });
}

greta_status greta_graph_drop(greta_compute* compute, greta_stream handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      if (!stream.graph) return fail(Code::Argument, "no graph is being recorded on the stream");
      drop_graph(*compute, stream);
      return {};
    });
  });
}

greta_status greta_graph_close(greta_compute* compute, greta_graph handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    std::shared_ptr<Object> object;
    GRETA_TRY(compute->remove(handle.owner, handle.number, Object::Kind::Graph, &object));
    if (object) close_handles(*compute, &static_cast<GraphObject&>(*object).slot_handles);
    return {};
  });
}

greta_status greta_graph_describe(const greta_compute* compute, greta_graph handle,
                                  greta_graph_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    std::shared_ptr<GraphObject> graph;
    GRETA_TRY(compute->find(handle, &graph));
    return write_result(graph->info(), out_info);
  });
}

greta_status greta_graph_print(const greta_compute* compute, greta_graph handle, char* text, size_t capacity,
                               size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    std::shared_ptr<GraphObject> graph;
    GRETA_TRY(compute->find(handle, &graph));
    return give_text(graph->text(), text, capacity, out_bytes);
  });
}

greta_status greta_graph_run(greta_compute* compute, greta_stream handle, greta_graph graph,
                             const greta_graph_binding* bindings, size_t count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    if (count) GRETA_TRY(need(bindings, "bindings"));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<GraphObject> found;
      GRETA_TRY(stream.not_recording("run"));
      GRETA_TRY(compute->find(graph, &found));
      GRETA_TRY(found->take_stream(*compute, stream));
      stream.use(found);
      return found->run(*compute, stream, {bindings, count});
    });
  });
}
