// A pass of several pieces of a step over experts that are brought: each segment runs for all pieces before
// the next layer's experts come, so that these come once for all of them. The pieces replay the plans of
// steps. What these have in fixed places, the rows and the residual, is copied there for each piece.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/executor/attempt.h"
#include "engine/executor/deep_steps.h"
#include "engine/executor/memory.h"

namespace greta {

bool Executor::passes(std::span<const Row> rows) const {
  const auto has_adapters = [&](const Row& row) { return adapters_[row.sequence] != nullptr; };
  return plan_.passes() && brings_at(rows.size()) && std::ranges::none_of(rows, has_adapters);
}

// Does everything before the launches.
Status Executor::prepare_pass(std::span<Piece> pieces) {
  GRETA_TRY(model_.gguf.source().check_mapped());
  std::vector<Row> all;
  for (Piece& piece : pieces) all.insert(all.end(), piece.rows.begin(), piece.rows.end());
  note_wants(all);
  for (Piece& piece : pieces) {
    GRETA_TRY(choose_plan(piece.rows, &piece.key));
    piece.key.brings = true;
    GRETA_TRY(plan_for(piece.key, &piece.plan));
  }
  for (Piece& piece : pieces) GRETA_TRY(plan_for(piece.key, &piece.plan));  // the list may have grown
  GRETA_TRY(land(flight_));
  GRETA_TRY(barrier());  // the previous step may still read what is written now
  GRETA_TRY(upload_sequences());
  rows_there_.clear();
  output_rows_there_.clear();
  const uint32_t d = brought_segments_[0].device;
  uint8_t* to = static_cast<uint8_t*>(on_[d].staged[flight_].pieces.buffer().mapped);
  StepState& state = host_state();
  for (const Piece& piece : pieces) {
    write_rows(piece.rows);
    state.lone_count = piece.plan->lone[d] ? count_lone(piece.rows) : 0;
    memcpy(to, &state, kRowsBytes);
    to += kRowsBytes;
  }
  return {};
}

// Runs one segment for one piece.
Status Executor::run_piece(std::span<const Piece> pieces, size_t piece, size_t segment) {
  const Segment& part = brought_segments_[segment];
  OnDevice& on = on_[part.device];
  Stream& stream = *on.stream;
  const GretaGraph& graph = *pieces[piece].plan->graphs[segment];
  const uint64_t bytes = residual_bytes(model_.shape, plan_.step_tokens);
  const Slice kept = on.residuals.slice(piece * bytes, bytes), residual = on.residual.slice(0, bytes);
  const Slice rows = on.staged[flight_].pieces.slice(piece * kRowsBytes, kRowsBytes);
  GRETA_TRY(stream.copy(on.step.slice(0, kRowsBytes), rows));
  if (segment) GRETA_TRY(stream.copy(residual, kept));
  GRETA_TRY(stream.barrier());
  if (!graph.commands().empty()) GRETA_TRY(graph.run(stream));
  GRETA_TRY(stream.barrier());
  if (!part.ends()) GRETA_TRY(stream.copy(kept, residual));
  return stream.barrier();
}

Status Executor::run_pass(std::span<const Piece> pieces) {
  const std::span<const Segment> segments = brought_segments_;
  const uint32_t d = segments[0].device;
  Stream& stream = *on_[d].stream;
  GRETA_TRY(wait_for_idle(segments));
  for (size_t i = 0; i < segments.size(); ++i) {
    GRETA_TRY(bring(segments[i]));
    for (size_t p = 0; p < pieces.size(); ++p) {
      const bool last = p + 1 == pieces.size();
      GRETA_TRY(on_device(model_, d, run_piece(pieces, p, i)));
      if (last && segments[i].brings != kNoLayer)
        GRETA_TRY(on_device(model_, d, on_[d].brought->note_use(segments[i].brings, stream)));
      if (last && segments[i].ends()) {
        follow_draws();
        GRETA_TRY(on_device(model_, d, stream.signal(flights_[flight_].done)));
      }
      const Span span(model_.spans, SpanKind::Submit, "submit");
      GRETA_TRY(on_device(model_, d, stream.submit()));
    }
    GRETA_TRY(begin_to_bring(segments.subspan(i + 1)));
  }
  return {};
}

Status Executor::submit_pass(std::span<Piece> pieces, uint32_t* out) {
  Attempt attempt(*this);
  Span span(model_.spans, SpanKind::Record, "record");
  GRETA_TRY(prepare_pass(pieces));
  uint32_t rows = 0;
  for (const Piece& piece : pieces) rows += uint32_t(piece.rows.size());
  note_step(rows, pieces.back().rows.back(), &span.event);
  GRETA_TRY(run_pass(pieces));
  attempt.keep();
  take_off(rows, out);
  return {};
}

}  // namespace greta
