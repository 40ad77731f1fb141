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
  if (call.op == Op::Softmax) {
    call.softmax.heads = uint32_t(times);
    work.rows /= times;
    return {};
  }
  const bool norm = call.op == Op::Norm;
  const uint64_t width = uint64_t(call.width) * (norm ? call.norm.heads : 1);
  const auto dense = [&](uint32_t stride) { return !stride || stride == width; };
  const Op alone[] = {Op::Norm, Op::Add, Op::Gate, Op::Multiply, Op::Softcap, Op::Cast};
  const bool single = std::find(std::begin(alone), std::end(alone), call.op) != std::end(alone);
  if (!single || !dense(call.x_stride) || !dense(call.y_stride) || width > UINT32_MAX / times)
    return fail(Code::Unsupported, "%s: %llu rows of the tensors for each row of the stream's step",
                op_name(call.op), (unsigned long long)times);
  (norm ? call.norm.heads : call.width) *= uint32_t(times);
  call.x_stride *= uint32_t(times), call.y_stride *= uint32_t(times);
  for (uint64_t& bytes : work.row_bytes) bytes *= times;
  for (Work::Half& half : work.halves) half.width *= uint32_t(times);
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
  if (work.call.op == Op::Softmax) work.rows = work.call.softmax.rows;
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
    std::shared_ptr<const Recipe> recipe;
    GRETA_TRY(compute.recipes.find(work.call, bucket_of(work, rows), &recipe));
    GRETA_TRY(body(first, rows, *recipe));
  }
  return {};
}

// The call that makes float32 of a half operand, or of its result what is wanted. `other` has the float32.
Call cast_of(const Work& work, const Work::Half& half, const Slice& operand, const Slice& other) {
  const bool result = half.slot == kY;
  Call call = result ? CallMaker{}.cast(other, operand, half.width, {kCastF32, half.type})
                     : CallMaker{}.cast(operand, other, half.width, {half.type, kCastF32});
  if (result && work.call.rows_of != kRowsTokens) call.rows_of = kRowsOutputs;
  return call;
}

uint64_t float_bytes(const Work::Half& half, uint64_t rows) {
  return round_up(rows * half.width * sizeof(float), kWeightAlignment);
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

// The scratch of the kernels comes first, then that of half operands.
Status plan_work(greta_compute& compute, const Work& work, uint64_t* out_scratch_bytes) {
  uint64_t of_kernels = 0, of_halves = 0;
  GRETA_TRY(for_pieces(compute, work, [&](uint64_t, uint32_t rows, const Recipe& recipe) -> Status {
    of_kernels = std::max(of_kernels, recipe.scratch_bytes());
    for (uint32_t h = 0; h < work.half_count; ++h) {
      const Slice& operand = work.call.slot[work.halves[h].slot];
      std::shared_ptr<const Recipe> cast;
      GRETA_TRY(compute.recipes.find(cast_of(work, work.halves[h], operand, operand), rows, &cast));
    }
    return {};
  }));
  for (uint32_t h = 0; h < work.half_count; ++h)
    of_halves += float_bytes(work.halves[h], std::min(kMostRows, work.rows));
  *out_scratch_bytes = of_halves ? round_up(of_kernels, kWeightAlignment) + of_halves : of_kernels;
  return {};
}

// What the kernels know of the rows of a launch.
static Status step_of(greta_compute& compute, const Work& work, bool counts_rows, uint32_t rows, Slice* out) {
  if (work.step.buffer) {
    *out = work.step;
    return {};
  }
  return counts_rows ? compute.recipes.live_rows(rows, out) : compute.recipes.numbered_rows(out);
}

// Adds a call to a graph's, with those that cast its half operands to and from temporaries of the graph.
static void add_with_halves(GraphObject& graph, const Work& work, GraphCall made, uint32_t rows,
                            std::vector<GraphCall>* calls) {
  GraphCall back = {{}, 0};
  for (uint32_t h = 0; h < work.half_count; ++h) {
    const Work::Half& half = work.halves[h];
    Slice& slot = made.call.slot[half.slot];
    const Slice floats = graph.temporary(float_bytes(half, rows));
    GraphCall cast = {cast_of(work, half, slot, floats), made.bucket};
    cast.call.slot[kStep] = made.call.slot[kStep];
    slot = floats;
    if (half.slot == kY)
      back = cast;
    else
      calls->push_back(cast);
  }
  calls->push_back(made);
  if (back.bucket) calls->push_back(back);
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
    add_with_halves(graph, work, made, rows, &calls);
  }
  graph.add({work.uses.data(), work.use_count}, std::move(calls));
  return {};
}

// Records a launch between those that cast its half operands to and from scratch.
static Status record_with_halves(greta_compute& compute, const Work& work, const Recipe& recipe,
                                 Operands operands, const Slice& scratch, uint32_t rows,
                                 StreamObject& stream) {
  Slice rest = scratch, wanted = {};
  Operands of_cast;
  GRETA_TRY(step_of(compute, work, false, rows, &of_cast[kStep]));
  const Work::Half* result = nullptr;
  const auto cast = [&](const Work::Half& half, const Slice& operand, const Slice& floats) -> Status {
    const Call call = cast_of(work, half, operand, floats);
    std::shared_ptr<const Recipe> found;
    GRETA_TRY(compute.recipes.find(call, rows, &found));
    of_cast[kX] = call.slot[kX], of_cast[kY] = call.slot[kY];
    return compute.recipes.record(*found, of_cast, {}, rows, stream);
  };
  for (uint32_t h = work.half_count; h-- > 0;) {  // from the end of the scratch
    const Work::Half& half = work.halves[h];
    const uint64_t bytes = float_bytes(half, std::min(kMostRows, work.rows));
    rest.bytes -= bytes;
    const Slice floats = {rest.buffer, rest.offset + rest.bytes, uint64_t(rows) * half.width * sizeof(float)};
    Slice& operand = operands[half.slot];
    if (half.slot == kY)
      result = &half, wanted = operand;
    else
      GRETA_TRY(cast(half, operand, floats));
    operand = floats;
  }
  GRETA_TRY(compute.recipes.record(recipe, operands, rest, rows, stream));
  return result ? cast(*result, wanted, operands[kY]) : Status{};
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
      if (!work.half_count) return compute.recipes.record(recipe, operands, arena, rows, stream);
      return record_with_halves(compute, work, recipe, operands, arena, rows, stream);
    });
  });
}

}  // namespace greta
