#include "api/compute/work.h"

#include "api/compute/graphs.h"

namespace greta {

namespace {

constexpr uint64_t kMostRows = kMaxStepTokens;  // of a launch

uint32_t bucket_of(const Work& work, uint32_t rows) { return work.counts_rows ? token_bucket(rows) : rows; }

// Runs body(first row, rows, recipe) -> Status for each launch's rows.
template <class Body>
Status for_pieces(greta_compute& compute, const Work& work, Body&& body) {
  for (uint64_t first = 0; first < work.rows; first += kMostRows) {
    const uint32_t rows = uint32_t(std::min(kMostRows, work.rows - first));
    const Recipe* recipe = nullptr;
    GRETA_TRY(compute.recipes.find(work.call, bucket_of(work, rows), &recipe));
    GRETA_TRY(body(first, rows, *recipe));
  }
  return {};
}

Slice rows_of(const Slice& all, uint64_t row_bytes, uint64_t first, uint64_t rows) {
  if (!all.buffer || !row_bytes) return all;
  const uint64_t at = first * row_bytes;
  return {all.buffer, all.offset + at, std::min(rows * row_bytes, all.bytes - at)};
}

Status read_scratch(const greta_compute& compute, greta_buffer handle, uint64_t offset, uint64_t bytes,
                    const Work& work, std::shared_ptr<BufferObject>* buffer, Slice* out) {
  GRETA_TRY(within(compute.find(handle, buffer), "scratch of %llu bytes", (unsigned long long)bytes));
  if (offset % kWeightAlignment)
    return fail(Code::Argument, "scratch: the offset %llu is no multiple of %llu", (unsigned long long)offset,
                (unsigned long long)kWeightAlignment);
  GRETA_TRY(slice_of(**buffer, "scratch", offset, bytes, out));
  const auto touches = [&](const Slice& slice) { return overlaps(slice, *out); };
  if (std::any_of(std::begin(work.call.slot), std::end(work.call.slot), touches) ||
      touches(work.call.weight.slice))
    return fail(Code::Argument, "scratch: %llu bytes at %llu overlap a tensor of the call",
                (unsigned long long)bytes, (unsigned long long)offset);
  return {};
}

}  // namespace

Status plan_work(greta_compute& compute, const Work& work, uint64_t* out_scratch_bytes) {
  *out_scratch_bytes = 0;
  return for_pieces(compute, work, [&](uint64_t, uint32_t, const Recipe& recipe) -> Status {
    *out_scratch_bytes = std::max(*out_scratch_bytes, recipe.scratch_bytes());
    return {};
  });
}

// Adds the launches to the graph that the stream records.
static Status add_work(greta_compute& compute, GraphObject& graph, const Work& work) {
  uint64_t unused;
  Slice numbered, counters;
  GRETA_TRY(plan_work(compute, work, &unused));
  GRETA_TRY(compute.recipes.numbered_rows(&numbered));
  if (work.counts_rows) GRETA_TRY(graph.need_counters(compute, &counters));
  GRETA_TRY(graph.can_hold(work.call.weight.slice));
  return graph.add({work.uses.data(), work.use_count}, [&](GretaGraph& plan) -> Status {
    for (uint64_t first = 0; first < work.rows; first += kMostRows) {
      const uint32_t rows = uint32_t(std::min(kMostRows, work.rows - first));
      Call call = work.call;
      for (uint32_t s = 0; s < kSlotCount; ++s)
        call.slot[s] = rows_of(call.slot[s], work.row_bytes[s], first, rows);
      call.slot[kStep] = numbered;
      call.slot[kCounters] = counters;
      if (work.counts_rows) GRETA_TRY(compute.recipes.live_rows(rows, &call.slot[kStep]));
      GRETA_TRY(plan.add({&call, 1}, bucket_of(work, rows)));
    }
    return {};
  });
}

Status record_work(greta_compute& compute, StreamObject& stream, const Work& work, greta_buffer scratch,
                   uint64_t scratch_offset) {
  for (uint32_t i = 0; i < work.use_count; ++i) GRETA_TRY(stream.can_use(*work.uses[i]));
  if (stream.graph) return add_work(compute, *stream.graph, work);
  Slice numbered, counters, arena;
  std::shared_ptr<BufferObject> arena_buffer;
  uint64_t scratch_bytes;
  GRETA_TRY(compute.recipes.numbered_rows(&numbered));
  if (work.counts_rows) GRETA_TRY(stream.need_counters(compute, &counters));
  GRETA_TRY(plan_work(compute, work, &scratch_bytes));
  if (scratch_bytes)
    GRETA_TRY(read_scratch(compute, scratch, scratch_offset, scratch_bytes, work, &arena_buffer, &arena));
  for (uint32_t i = 0; i < work.use_count; ++i) stream.use(work.uses[i]);
  if (arena_buffer) {
    GRETA_TRY(stream.can_use(*arena_buffer));
    stream.use(arena_buffer);
  }
  return recorded(stream, [&] {
    return for_pieces(compute, work, [&](uint64_t first, uint32_t rows, const Recipe& recipe) -> Status {
      Operands operands;
      for (uint32_t s = 0; s < kSlotCount; ++s)
        operands[s] = rows_of(work.call.slot[s], work.row_bytes[s], first, rows);
      operands[kWeightOperand] = work.call.weight.slice;
      operands[kStep] = numbered;
      operands[kCounters] = counters;
      if (work.counts_rows) GRETA_TRY(compute.recipes.live_rows(rows, &operands[kStep]));
      return compute.recipes.record(recipe, operands, arena, rows, stream);
    });
  });
}

}  // namespace greta
