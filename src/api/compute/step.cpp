// The functions of greta_compute.h for the rows of a step.
#include "api/compute/step.h"

#include <cstddef>

using namespace greta;

static_assert(GRETA_PAGE_POSITIONS == kPageTokens && GRETA_TOKEN_DRAWN == kTokenFromSample);

namespace greta {

namespace {

constexpr uint32_t kMostPositions = 1u << 24;
// What a change sends at most, but for page tables, which go in several pieces: the counts, and for each row
// a StepRow and which output it has.
constexpr uint64_t kStepHeadBytes = offsetof(StepState, row);

uint64_t upload_bytes(uint32_t rows) { return kStepHeadBytes + rows * (sizeof(StepRow) + sizeof(uint32_t)); }

uint32_t sequence_pages_of(const greta_step_options& o) {
  return uint32_t(divide_up(o.positions, kPageTokens));
}

Status check_step_options(const greta_step_options& o, uint64_t most_bytes) {
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
  for (uint32_t t = 0; t < list.size(); ++t) {
    const greta_row& row = list[t];
    bool output = false;
    GRETA_TRY(read_flag(row.output, "output", &output));
    if (row.position >= positions || row.sequence >= sequences)
      return fail(Code::Argument, "row %u: position %u of sequence %u, there are %u of %u", t, row.position,
                  row.sequence, positions, sequences);
    made.row[t] = {row.token, row.position, row.sequence, output ? outputs : kNoOutput};
    if (output) output_row[outputs++] = t;
  }
  const uint32_t head[] = {uint32_t(list.size()), outputs, 0, 0, sequences, sequence_pages};
  static_assert(sizeof head == kStepHeadBytes);
  memcpy(made.head, head, sizeof head);
  const Piece pieces[] = {{0, &made, kStepHeadBytes + list.size() * sizeof(StepRow)},
                          {offsetof(StepState, output_row), output_row, outputs * sizeof(uint32_t)}};
  return send(stream, pieces);
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
      stream.step = std::move(found);
      return {};
    });
  });
}
