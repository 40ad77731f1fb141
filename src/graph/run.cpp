// Fixing a plan's addresses, capturing it, replaying it.
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
  for (Step& step : steps_) {
    if (step.calls.empty()) {
      step.to = bound(step.to, arena);
      step.from = bound(step.from, arena);
      continue;
    }
    for (Call& call : step.calls)
      for (Slice& slice : call.slot) slice = bound(slice, arena);
    step.launch = {};
    make_launch(step.calls, *step.row, step.bucket, filter_, &step.launch);
    GRETA_TRY(kernels.load(*step.row, {step.launch.block, step.launch.block_bytes}, &step.launch.kernel));
  }
  return {};
}

Status GretaGraph::record(Stream& stream) const {
  for (const Step& step : steps_) {
    if (step.barrier_before) GRETA_TRY(stream.barrier());
    if (step.calls.empty()) {
      GRETA_TRY(stream.copy(step.to, step.from));
      continue;
    }
    const Launch& launch = step.launch;
    GRETA_TRY(stream.dispatch(*launch.kernel, launch.groups, {launch.block, launch.block_bytes},
                              {launch.accesses, launch.access_count}));
  }
  return {};
}

Status GretaGraph::capture(Stream& stream, Device& device) {
  GRETA_TRY(stream.begin_capture());
  const Status recorded = record(stream);
  Graph graph;
  const Status ended = stream.end_capture(&graph);
  GRETA_TRY(recorded);
  GRETA_TRY(ended);
  captured_ = graph;
  captured_on_ = &device;
  return {};
}

Status GretaGraph::run(Stream& stream) const {
  return captured_on_ ? stream.replay(captured_) : record(stream);
}

uint32_t GretaGraph::barriers() const {
  uint32_t count = 0;
  for (const Step& step : steps_) count += step.barrier_before;
  return count;
}

void GretaGraph::remove_barrier(uint32_t index) {
  for (Step& step : steps_)
    if (step.barrier_before && index-- == 0) {
      step.barrier_before = false;
      return;
    }
}

}  // namespace greta
