#include "api/compute/work.h"

#include "api/compute/graphs.h"

namespace greta {

namespace {

constexpr uint64_t kMostRows = kMaxStepTokens;  // of a launch

uint32_t bucket_of(const Work& work, uint32_t rows) { return work.counts_rows ? token_bucket(rows) : rows; }

// Each row of a step has several rows of the tensors, where these have more dimensions: they become
// wider.
Status widen(Work& work, uint64_t times) {
  Call& call = work.call;
  const bool norm = call.op == Op::Norm;
  const uint64_t width = uint64_t(call.width) * (norm ? call.norm.heads : 1);
  const auto dense = [&](uint32_t stride) { return !stride || stride == width; };
  const bool single =
      norm || call.op == Op::Add || call.op == Op::Gate || call.op == Op::Multiply || call.op == Op::Softcap;
  if (!single || !dense(call.x_stride) || !dense(call.y_stride) || width > UINT32_MAX / times)
    return fail(Code::Unsupported, "%s: %llu rows of the tensors for each row of the stream's step",
                op_name(call.op), (unsigned long long)times);
  (norm ? call.norm.heads : call.width) *= uint32_t(times);
  call.x_stride *= uint32_t(times), call.y_stride *= uint32_t(times);
  for (uint64_t& bytes : work.row_bytes) bytes *= times;
  work.rows /= times;
  return {};
}

// Lets the work run over the live rows of the stream's step, if it has one.
Status take_step(const StreamObject& stream, Work& work) {
  if (!work.has_rows) return {};
  const StepObject* const step = stream.step.get();
  const char* const name = op_name(work.call.op);
  if (!step) {
    if (!work.needs_step) return {};
    return fail(Code::Argument, "%s: the stream has no step (greta_stream_step)", name);
  }
  if (work.rows > step->capacity && work.rows % step->capacity == 0)
    GRETA_TRY(widen(work, work.rows / step->capacity));
  if (work.rows != step->capacity)
    return fail(Code::Argument, "%s: tensors of %llu rows, the stream's step has %u", name,
                (unsigned long long)work.rows, step->capacity);
  if (work.needs_lone_rows && !step->lone_rows)
    return fail(Code::Argument, "attention: lone_rows, the stream's step was opened without");
  const struct {
    const char* what;
    uint64_t most, wanted;
  } kinds[] = {{"pages", work.most_pages, step->pages},
               {"positions", work.most_positions, step->positions},
               {"sequences", work.most_sequences, step->sequences}};
  for (const auto& kind : kinds)
    if (kind.most < kind.wanted)
      return fail(Code::Argument, "%s: room for %llu %s, the stream's step has %llu", name,
                  (unsigned long long)kind.most, kind.what, (unsigned long long)kind.wanted);
  work.row_bytes[kTable] = 0;  // rows read it anywhere
  work.step = step->state();
  work.use(step->buffer());
  return {};
}

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

// What the kernels know of the rows of a launch.
static Status step_of(greta_compute& compute, const Work& work, bool counts_rows, uint32_t rows, Slice* out) {
  if (work.step.buffer) {
    *out = work.step;
    return {};
  }
  return counts_rows ? compute.recipes.live_rows(rows, out) : compute.recipes.numbered_rows(out);
}

// Adds the launches to the graph that the stream records. Calls that may share a launch have the same step
// and the same bucket, so all but rotations count their rows.
static Status add_work(greta_compute& compute, GraphObject& graph, const Work& work) {
  uint64_t unused;
  Slice step, counters;
  const bool counts_rows = work.step.buffer || work.call.op != Op::Rope;
  GRETA_TRY(plan_work(compute, work, &unused));
  GRETA_TRY(step_of(compute, work, counts_rows, 1, &step));
  if (takes_counters(work.call.op)) GRETA_TRY(graph.need_counters(compute, &counters));
  GRETA_TRY(graph.can_hold(work.call.weight.slice));
  std::vector<GraphCall> calls;
  for (uint64_t first = 0; first < work.rows; first += kMostRows) {
    const uint32_t rows = uint32_t(std::min(kMostRows, work.rows - first));
    GraphCall made = {work.call, counts_rows ? token_bucket(rows) : rows};
    for (uint32_t s = 0; s < kSlotCount; ++s)
      made.call.slot[s] = rows_of(work.call.slot[s], work.row_bytes[s], first, rows);
    made.call.slot[kCounters] = counters;
    GRETA_TRY(step_of(compute, work, counts_rows, rows, &made.call.slot[kStep]));
    graph.give_scratch(made);
    calls.push_back(made);
  }
  graph.add({work.uses.data(), work.use_count}, std::move(calls));
  return {};
}

Status record_work(greta_compute& compute, StreamObject& stream, const Work& given, greta_buffer scratch,
                   uint64_t scratch_offset) {
  Work work = given;
  GRETA_TRY(take_step(stream, work));
  for (uint32_t i = 0; i < work.use_count; ++i) GRETA_TRY(stream.can_use(*work.uses[i]));
  const bool draws = work.call.op == Op::Sample;
  if (stream.graph) {
    GRETA_TRY(add_work(compute, *stream.graph, work));
    if (draws) stream.graph->draws.push_back(stream.step);
    return {};
  }
  Slice step, counters, arena;
  std::shared_ptr<BufferObject> arena_buffer;
  uint64_t scratch_bytes;
  GRETA_TRY(step_of(compute, work, work.counts_rows, 1, &step));
  if (takes_counters(work.call.op)) GRETA_TRY(stream.need_counters(compute, &counters));
  GRETA_TRY(plan_work(compute, work, &scratch_bytes));
  if (scratch_bytes)
    GRETA_TRY(read_scratch(compute, scratch, scratch_offset, scratch_bytes, work, &arena_buffer, &arena));
  if (arena_buffer) GRETA_TRY(stream.can_use(*arena_buffer));
  for (uint32_t i = 0; i < work.use_count; ++i) stream.use(work.uses[i]);
  if (arena_buffer) stream.use(arena_buffer);
  if (draws) GRETA_TRY(stream.step->draw(stream));
  return recorded(stream, [&] {
    return for_pieces(compute, work, [&](uint64_t first, uint32_t rows, const Recipe& recipe) -> Status {
      Operands operands;
      for (uint32_t s = 0; s < kSlotCount; ++s)
        operands[s] = rows_of(work.call.slot[s], work.row_bytes[s], first, rows);
      operands[kWeightOperand] = work.call.weight.slice;
      operands[kCounters] = counters;
      GRETA_TRY(step_of(compute, work, work.counts_rows, rows, &operands[kStep]));
      return compute.recipes.record(recipe, operands, arena, rows, stream);
    });
  });
}

}  // namespace greta
