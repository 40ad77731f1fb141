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
  const auto has_adapters = [&](const Row& row) { return adapters_.of(row.sequence) != nullptr; };
  return plan_.passes() && brings_at(rows.size()) && std::ranges::none_of(rows, has_adapters);
}

// Does everything before the launches.
Status Executor::prepare_pass(std::span<Piece> pieces) {
  GRETA_TRY(model_.gguf.source().check_mapped());
  std::vector<Row> all;
  for (Piece& piece : pieces) all.insert(all.end(), piece.rows.begin(), piece.rows.end());
  sequences_.note_wants(all);
  for (Piece& piece : pieces) {
    GRETA_TRY(choose_plan(piece.rows, &piece.key));
    piece.key.brings = true;
    GRETA_TRY(plans_.find(piece.key, &piece.plan));
  }
  for (Piece& piece : pieces) GRETA_TRY(plans_.find(piece.key, &piece.plan));  // the list may have grown
  GRETA_TRY(flights_.land(flights_.next()));
  GRETA_TRY(on_.barrier());  // the previous step may still read what is written now
  GRETA_TRY(upload_.sequences());
  upload_.forget_rows();
  upload_.forget_outputs();
  const uint32_t d = plans_.brought_segments()[0].device;
  uint8_t* to = static_cast<uint8_t*>(on_[d].staged[flights_.next()].pieces.buffer().mapped);
  StepState& state = upload_.host();
  for (const Piece& piece : pieces) {
    upload_.write_rows(piece.rows);
    state.lone_count = piece.plan->lone[d] ? count_lone(piece.rows) : 0;
    memcpy(to, &state, kRowsBytes);
    to += kRowsBytes;
  }
  return {};
}

// Runs one segment for one piece.
Status Executor::run_piece(std::span<const Piece> pieces, size_t piece, size_t segment) {
  const Segment& part = plans_.brought_segments()[segment];
  ExecutorOnDevice& on = on_[part.device];
  Stream& stream = *on.stream;
  const GretaGraph& graph = *pieces[piece].plan->graphs[segment];
  const uint64_t bytes = residual_bytes(model_.shape, plan_.step_tokens);
  const Slice kept = on.residuals.slice(piece * bytes, bytes), residual = on.residual.slice(0, bytes);
  const Slice rows = on.staged[flights_.next()].pieces.slice(piece * kRowsBytes, kRowsBytes);
  GRETA_TRY(stream.copy(on.step.slice(0, kRowsBytes), rows));
  if (segment) GRETA_TRY(stream.copy(residual, kept));
  GRETA_TRY(stream.barrier());
  if (!graph.commands().empty()) GRETA_TRY(graph.run(stream));
  GRETA_TRY(stream.barrier());
  if (!part.ends()) GRETA_TRY(stream.copy(kept, residual));
  return stream.barrier();
}

Status Executor::run_pass(std::span<const Piece> pieces) {
  const std::span<const Segment> segments = plans_.brought_segments();
  const uint32_t d = segments[0].device;
  Stream& stream = *on_[d].stream;
  GRETA_TRY(wait_for_idle(segments));
  for (size_t i = 0; i < segments.size(); ++i) {
    GRETA_TRY(bringing_.finish(segments[i]));
    for (size_t p = 0; p < pieces.size(); ++p) {
      const bool last = p + 1 == pieces.size();
      GRETA_TRY(on_device(model_, d, run_piece(pieces, p, i)));
      if (last && segments[i].brings != kNoLayer)
        GRETA_TRY(on_device(model_, d, on_[d].brought->note_use(segments[i].brings, stream)));
      if (last && segments[i].ends()) {
        upload_.follow_draws();
        GRETA_TRY(on_device(model_, d, flights_.signal_end(stream)));
      }
      const Span span(model_.spans, SpanKind::Submit, "submit");
      GRETA_TRY(on_device(model_, d, stream.submit()));
    }
    GRETA_TRY(bringing_.begin(segments.subspan(i + 1)));
  }
  return {};
}

Status Executor::submit_pass(std::span<Piece> pieces, uint32_t* out) {
  Attempt attempt(*this);
  Span span(model_.spans, SpanKind::Record, "record");
  GRETA_TRY(prepare_pass(pieces));
  uint32_t rows = 0;
  for (const Piece& piece : pieces) rows += uint32_t(piece.rows.size());
  span.event.number = tell_step(rows, pieces.back().rows.back(), span.event.begin_ns);
  GRETA_TRY(run_pass(pieces));
  attempt.keep();
  take_off(rows, out);
  return {};
}

}  // namespace greta
