// Fixes a plan's addresses, captures the plan and replays it.
#include "graph/graph.h"

namespace greta {

GretaGraph::~GretaGraph() {
  if (captured_on_) captured_on_->destroy(captured_);
}

Slice GretaGraph::bound(const Slice& slice, const Slice& arena) {
  const Temporary* t = temporary_of(slice);
  if (!t) return slice;
  return {arena.buffer, arena.offset + t->offset + (slice.offset - t->place), slice.bytes};
}

Status GretaGraph::bind(KernelSet& kernels, const Slice& arena) {
  if (arena.bytes < arena_bytes_)
    return fail(Code::Memory, "a step needs %llu bytes of working memory, the arena has %llu",
                (unsigned long long)arena_bytes_, (unsigned long long)arena.bytes);
  for (Command& command : commands_) {
    if (command.calls.empty()) {
      command.to = bound(command.to, arena);
      command.from = bound(command.from, arena);
      continue;
    }
    for (Call& call : command.calls)
      for (Slice& slice : call.slot) slice = bound(slice, arena);
    command.launch = {};
    make_launch(command.calls, *command.row, command.bucket, filter_.device, &command.launch);
    command.launch.kernel = kernels.want(*command.row, command.launch.fields());
  }
  return {};
}

Status GretaGraph::record(const Command& command, Stream& stream) {
  if (command.calls.empty()) return stream.copy(command.to, command.from);
  const Launch& launch = command.launch;
  return stream.dispatch(*launch.kernel, launch.groups, launch.arguments(),
                         {launch.accesses, launch.access_count});
}

Status GretaGraph::record(Stream& stream) const {
  for (const Command& command : commands_) {
    if (command.split_before) GRETA_TRY(stream.split());
    if (command.barrier_before) GRETA_TRY(stream.barrier());
    GRETA_TRY(record(command, stream));
  }
  return {};
}

Cost GretaGraph::Command::cost(uint32_t tokens, uint32_t outputs, uint32_t depth) const {
  if (!row) return {2 * to.bytes, 0};
  const uint32_t rows = lead_call(calls).rows_of == kRowsTokens ? tokens : outputs;
  return lead_of(calls).cost(calls, rows, depth);
}

Status GretaGraph::run(Stream& stream, std::span<Event> events) const {
  size_t next = 0;
  for (const Command& command : commands_) {
    if (command.barrier_before) {
      GRETA_TRY(stream.barrier());
      GRETA_TRY(stream.stamp(events[next++]));
    }
    GRETA_TRY(record(command, stream));
  }
  return stream.stamp(events[next]);
}

Status GretaGraph::time_commands(Stream& stream, Device& device, std::vector<uint64_t>* ns) const {
  struct Events {
    Device& device;
    std::vector<Event> list;
    ~Events() {
      for (Event& event : list) device.destroy(event);
    }
  } events{device, std::vector<Event>(commands_.size() + 1)};
  Recording recording(stream);  // declared last, since it is destroyed before the events that it signals
  ns->assign(commands_.size(), 0);
  for (Event& event : events.list) GRETA_TRY(device.create_event(&event));
  GRETA_TRY(stream.barrier());
  GRETA_TRY(stream.signal(events.list[0]));
  for (size_t i = 0; i < commands_.size(); ++i) {
    GRETA_TRY(record(commands_[i], stream));
    GRETA_TRY(stream.barrier());
    GRETA_TRY(stream.signal(events.list[i + 1]));
  }
  GRETA_TRY(stream.wait());
  for (size_t i = 0; i < commands_.size(); ++i)
    GRETA_TRY(device.elapsed_ns(events.list[i], events.list[i + 1], &(*ns)[i]));
  return {};
}

Status GretaGraph::capture(Stream& stream, Device& device) {
  Recording recording(stream);
  GRETA_TRY(stream.begin_capture());
  GRETA_TRY(record(stream));
  GRETA_TRY(stream.end_capture(&captured_));
  recording.keep();
  captured_on_ = &device;
  return {};
}

Status GretaGraph::run(Stream& stream) const {
  return captured_on_ ? stream.replay(captured_) : record(stream);
}

uint32_t GretaGraph::barriers() const {
  uint32_t count = 0;
  for (const Command& command : commands_) count += command.barrier_before;
  return count;
}

void GretaGraph::remove_barrier(uint32_t index) {
  for (Command& command : commands_)
    if (command.barrier_before && index-- == 0) {
      command.barrier_before = false;
      return;
    }
}

}  // namespace greta
