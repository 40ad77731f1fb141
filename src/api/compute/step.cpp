// The functions of greta_compute.h for the rows of a step.
#include "api/compute/step.h"

#include <bitset>
#include <cmath>
#include <cstddef>

using namespace greta;

static_assert(GRETA_PAGE_POSITIONS == kPageTokens && GRETA_TOKEN_DRAWN == kTokenFromSample);

namespace greta {

namespace {

constexpr uint32_t kMostPositions = 1u << 24;
// What a change sends at most, but for page tables, which go in several pieces: the counts, and for each row
// a StepRow and which output it has.
constexpr uint64_t kStepHeadBytes = offsetof(StepState, row);

uint64_t upload_bytes(uint32_t rows) {
  return std::max(kStepHeadBytes + rows * (sizeof(StepRow) + sizeof(uint32_t)), sizeof(SampleParams));
}

uint32_t sequence_pages_of(const greta_step_options& o) {
  return uint32_t(divide_up(o.positions, kPageTokens));
}

Status check_step_options(const greta_step_options& o, uint64_t most_bytes) {
  bool lone_rows = false;
  GRETA_TRY(read_flag(o.lone_rows, "lone_rows", &lone_rows));
  if (!o.rows || o.rows > kMaxStepTokens || !o.sequences || o.sequences > kMaxStepSequences || !o.positions ||
      o.positions > kMostPositions)
    return fail(Code::Argument,
                "step: %u rows of %u sequences of %u positions; from 1 to %u, %u and %u are allowed", o.rows,
                o.sequences, o.positions, kMaxStepTokens, kMaxStepSequences, kMostPositions);
  const uint64_t table = uint64_t(o.sequences) * sequence_pages_of(o) * sizeof(uint32_t);
  if (table > most_bytes / 2)
    return fail(Code::Argument, "step: page tables of %llu bytes for %u sequences of %u positions",
                (unsigned long long)table, o.sequences, o.positions);
  return {};
}

}  // namespace

StepObject::StepObject(greta_compute& compute, const greta_step_options& o)
    : Object(Kind::Step),
      capacity(o.rows),
      sequences(o.sequences),
      positions(o.positions),
      lone_rows(o.lone_rows != 0),
      sequence_pages(sequence_pages_of(o)),
      pages(o.pages ? o.pages : o.sequences * sequence_pages_of(o)),
      memories_(compute.memories) {}

Status StepObject::open(greta_compute& compute) {
  auto state = std::make_shared<BufferObject>(memories_, GRETA_MEMORY_DEVICE);
  GRETA_TRY(memories_.take(GRETA_MEMORY_DEVICE, state_bytes(), &state->slice));
  std::vector<uint8_t> bytes(state_bytes());
  auto& step = *reinterpret_cast<StepState*>(bytes.data());
  step.sequence_capacity = sequences;
  step.page_capacity = sequence_pages;
  auto* const table = reinterpret_cast<uint32_t*>(bytes.data() + table_at(0, 0));
  for (uint32_t i = 0; i < sequences * sequence_pages; ++i) table[i] = i < pages ? i : 0;
  GRETA_TRY(upload_once(compute.device(), state->slice, bytes));
  state_ = std::move(state);
  return {};
}

Status StepObject::take_upload(std::shared_ptr<BufferObject>* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& each : uploads_)
    if (each.use_count() == 1) {
      *out = each;
      return {};
    }
  if (uploads_.size() == kMostOnTheWay)
    return fail(Code::Full, "step: %zu changes are behind the last wait of their streams, at most %zu may be",
                uploads_.size(), kMostOnTheWay);
  auto made = std::make_shared<BufferObject>(memories_, GRETA_MEMORY_UPLOAD);
  GRETA_TRY(memories_.take(GRETA_MEMORY_UPLOAD, upload_bytes(capacity), &made->slice));
  uploads_.push_back(made);
  *out = std::move(made);
  return {};
}

// The pieces together have at most upload_bytes().
Status StepObject::send(StreamObject& stream, std::span<const Piece> pieces) {
  std::shared_ptr<BufferObject> upload;
  GRETA_TRY(stream.not_recording("step"));
  GRETA_TRY(take_upload(&upload));
  stream.use(upload);
  stream.use(state_);
  return recorded(stream, [&]() -> Status {
    uint64_t at = 0;
    for (const Piece& piece : pieces) {
      if (!piece.bytes) continue;
      const Slice from = {upload->slice.buffer, upload->slice.offset + at, piece.bytes},
                  to = {state_->slice.buffer, state_->slice.offset + piece.at, piece.bytes};
      memcpy(static_cast<uint8_t*>(from.buffer->mapped) + from.offset, piece.data, piece.bytes);
      const Access accesses[] = {{from, Access::kRead}, {to, Access::kWrite}};
      GRETA_TRY(stream.order(accesses));
      GRETA_TRY(stream.stream->copy(to, from));
      at += piece.bytes;
    }
    return {};
  });
}

Status StepObject::set(StreamObject& stream, std::span<const greta_row> list) {
  if (list.size() > capacity)
    return fail(Code::Argument, "step: %zu rows, at most %u may live", list.size(), capacity);
  struct {
    uint8_t head[kStepHeadBytes];
    StepRow row[kMaxStepTokens];
  } made;
  static_assert(sizeof made == offsetof(StepState, output_row));
  uint32_t output_row[kMaxStepTokens], outputs = 0;
  std::bitset<kMaxStepSequences> seen;
  for (uint32_t t = 0; t < list.size(); ++t) {
    const greta_row& row = list[t];
    bool output = false;
    GRETA_TRY(read_flag(row.output, "output", &output));
    if (row.position >= positions || row.sequence >= sequences)
      return fail(Code::Argument, "row %u: position %u of sequence %u, there are %u of %u", t, row.position,
                  row.sequence, positions, sequences);
    if (lone_rows && seen[row.sequence])
      return fail(Code::Argument, "row %u: another one of sequence %u, in a step of lone rows", t,
                  row.sequence);
    seen[row.sequence] = true;
    made.row[t] = {row.token, row.position, row.sequence, output ? outputs : kNoOutput};
    if (output) output_row[outputs++] = t;
  }
  const uint32_t count = uint32_t(list.size()), lone = lone_rows ? count : 0;
  const uint32_t head[] = {count, outputs, 0, lone, sequences, sequence_pages};
  static_assert(sizeof head == kStepHeadBytes);
  memcpy(made.head, head, sizeof head);
  const Piece pieces[] = {{0, &made, kStepHeadBytes + list.size() * sizeof(StepRow)},
                          {offsetof(StepState, output_row), output_row, outputs * sizeof(uint32_t)}};
  GRETA_TRY(send(stream, pieces));
  const std::lock_guard<std::mutex> lock(mutex_);
  furthest_ = 0;
  for (const greta_row& row : list) furthest_ = std::max<uint64_t>(furthest_, row.position);
  forgets_ = stream.forgets;
  return {};
}

Status StepObject::draw(const StreamObject& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (forgets_ != stream.forgets)
    return fail(Code::Argument, "sample: the stream has forgotten work, so the step must be set again");
  if (furthest_ + 1 >= positions)
    return fail(Code::Argument, "sample: a row at position %llu would leave the %u of its sequence",
                (unsigned long long)furthest_, positions);
  ++furthest_;
  return {};
}

Status StepObject::set_draw(StreamObject& stream, uint32_t sequence, const greta_draw& given) {
  GRETA_TRY(check_reserved(given.reserved));
  if (sequence >= sequences)
    return fail(Code::Argument, "step: sequence %u, there are %u", sequence, sequences);
  const auto share = [](float value) { return value >= 0 && value <= 1; };
  if (!(given.temperature >= 0) || !std::isfinite(given.temperature) || !share(given.top_p) ||
      !share(given.min_p))
    return fail(Code::Argument, "step: a temperature of %g, top_p %g and min_p %g", double(given.temperature),
                double(given.top_p), double(given.min_p));
  SampleParams params = {};
  params.temperature = given.temperature;
  params.top_p = given.top_p, params.min_p = given.min_p, params.top_k = given.top_k;
  params.seed_low = uint32_t(given.seed), params.seed_high = uint32_t(given.seed >> 32);
  const Piece piece = {offsetof(StepState, sample) + sequence * sizeof params, &params, sizeof params};
  return send(stream, {&piece, 1});
}

Status StepObject::set_pages(StreamObject& stream, uint32_t sequence, uint32_t first,
                             std::span<const uint32_t> list) {
  if (sequence >= sequences || first > sequence_pages || list.size() > sequence_pages - first)
    return fail(Code::Argument, "step: %zu pages from entry %u on of sequence %u; %u sequences have %u each",
                list.size(), first, sequence, sequences, sequence_pages);
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] >= pages)
      return fail(Code::Argument, "step: entry %zu is page %u, caches have %u", first + i, list[i], pages);
  const size_t most = upload_bytes(capacity) / sizeof(uint32_t);
  for (size_t at = 0; at < list.size(); at += most) {
    const std::span<const uint32_t> some = list.subspan(at, std::min(most, list.size() - at));
    const Piece piece = {table_at(sequence, uint32_t(first + at)), some.data(), some.size_bytes()};
    GRETA_TRY(send(stream, {&piece, 1}));
  }
  return {};
}

Status use_step(const greta_compute& compute, const StreamObject& stream, StepObject& step) {
  const std::lock_guard<std::mutex> lock(step.mutex_);
  if (stream.number == step.stream_) return {};
  std::shared_ptr<StreamObject> other;
  if (step.stream_ && compute.find(greta_stream{compute.owner, step.stream_}, &other).ok())
    return fail(Code::Argument, "step: it is used on stream %llx, not on stream %llx",
                (unsigned long long)step.stream_, (unsigned long long)stream.number);
  step.stream_ = stream.number;
  step.furthest_ = step.positions;  // not known until rows are set
  return {};
}

}  // namespace greta

greta_status greta_step_open(greta_compute* compute, const greta_step_options* given, greta_step* out_step) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(given, "options"));
    GRETA_TRY(need(out_step, "out_step"));
    greta_step_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_step_options(o, arena_limit(compute->device().info())));
    auto step = std::make_shared<StepObject>(*compute, o);
    GRETA_TRY(step->open(*compute));
    return compute->add(step, out_step);
  });
}

greta_status greta_step_close(greta_compute* compute, greta_step handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    std::shared_ptr<Object> object;
    return compute->remove(handle.owner, handle.number, Object::Kind::Step, &object);
  });
}

// Finds the step, and lets body(StreamObject&, StepObject&) -> Status record a change of it.
template <class Body>
static greta_status change_step(greta_compute* compute, greta_stream handle, greta_step step, Body&& body) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<StepObject> found;
      GRETA_TRY(compute->find(step, &found));
      GRETA_TRY(use_step(*compute, stream, *found));
      return body(stream, *found);
    });
  });
}

greta_status greta_step_set(greta_compute* compute, greta_stream handle, greta_step step,
                            const greta_row* list, uint32_t count) {
  return change_step(compute, handle, step, [&](StreamObject& stream, StepObject& changed) -> Status {
    if (count) GRETA_TRY(need(list, "list"));
    return changed.set(stream, {list, count});
  });
}

greta_status greta_step_draw(greta_compute* compute, greta_stream handle, greta_step step, uint32_t sequence,
                             const greta_draw* draw) {
  return change_step(compute, handle, step, [&](StreamObject& stream, StepObject& changed) -> Status {
    greta_draw given;
    GRETA_TRY(need(draw, "draw"));
    GRETA_TRY(read_options(draw, &given));
    return changed.set_draw(stream, sequence, given);
  });
}

greta_status greta_step_pages(greta_compute* compute, greta_stream handle, greta_step step, uint32_t sequence,
                              uint32_t first, const uint32_t* pages, uint32_t count) {
  return change_step(compute, handle, step, [&](StreamObject& stream, StepObject& changed) -> Status {
    if (count) GRETA_TRY(need(pages, "pages"));
    return changed.set_pages(stream, sequence, first, {pages, count});
  });
}

greta_status greta_stream_step(greta_compute* compute, greta_stream handle, greta_step step) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, handle, [&](StreamObject& stream) -> Status {
      std::shared_ptr<StepObject> found;
      if (step.number) GRETA_TRY(compute->find(step, &found));
      if (found) GRETA_TRY(use_step(*compute, stream, *found));
      stream.step = std::move(found);
      return {};
    });
  });
}
