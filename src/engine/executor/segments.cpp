// Runs a step's segments one after the other, and carries between devices what crosses.
#include <algorithm>

#include "engine/executor/attempt.h"

namespace greta {

// What a step before has drawn is on the device of the output alone. The rows get it from the host.
Status Executor::know_tokens(std::span<const Row>* rows) {
  const auto unknown = [](const Row& row) { return row.token == kTokenFromSample; };
  if (std::ranges::none_of(*rows, unknown)) return {};
  GRETA_TRY(flights_.land_all());
  known_rows_.assign(rows->begin(), rows->end());
  for (Row& row : known_rows_)
    if (unknown(row)) row.token = drawn(row.sequence, row.position - 1);
  *rows = known_rows_;
  return {};
}

// Devices that have nothing to do in a step are waited for, so that uploads to them do not pile up.
Status Executor::wait_for_idle(std::span<const Segment> segments) {
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (std::ranges::find(segments, d, &Segment::device) == segments.end())
      GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  return {};
}

Status Executor::run_last(const GretaGraph& graph, Stream& stream) {
  return flights_.run_last(graph, stream, plans_.segments().size() == 1);
}

// Records what a step's last segment leaves behind its launches.
Status Executor::end_segment(const Segment& segment) {
  GRETA_TRY(head_.keep_states());
  upload_.follow_draws();
  return flights_.signal_end(*on_[segment.device].stream);
}

// Submits the last segment, and runs those before it while the last one of the step before may still run. A
// step that fails between two segments leaves states of which it is not known whether it has changed them, as
// one whose submission fails.
Status Executor::run_segments(const PlannedStep& plan) {
  const bool on_processor = device_info(model_.placement.output()).host_functions;
  const std::span<const Segment> segments = plans_.segments(plan.key);
  GRETA_TRY(wait_for_idle(segments));
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint32_t d = segments[i].device;
    Stream& stream = *on_[d].stream;
    const GretaGraph& graph = *plan.graphs[i];
    const bool last = i + 1 == segments.size();
    GRETA_TRY(bringing_.finish(segments[i]));
    GRETA_TRY(on_device(model_, d, crossings_.receive(segments[i], plan.key.tokens)));
    if (!graph.commands().empty())
      GRETA_TRY(on_device(model_, d, last ? run_last(graph, stream) : graph.run(stream)));
    if (segments[i].brings != kNoLayer)
      GRETA_TRY(on_device(model_, d, on_[d].brought->note_use(segments[i].brings, stream)));
    GRETA_TRY(on_device(
        model_, d, last ? end_segment(segments[i]) : crossings_.send(segments[i], plan.key.tokens)));
    sequences_.move_states();
    {
      const Span span(model_.spans, SpanKind::Submit, "submit");
      GRETA_TRY(on_device(model_, d, stream.submit()));
    }
    if (last) break;
    // The processor computes while it is waited for, beside this segment.
    if (on_processor) GRETA_TRY(flights_.land_all());
    GRETA_TRY(bringing_.begin(segments.subspan(i + 1)));
    GRETA_TRY(crossings_.cross_behind(segments, i, plan.key.tokens));
  }
  return {};
}

// If some tokens are still being drawn, what embeds them waits for the host, before it reads the rows.
Status Executor::await_tokens(std::span<const Row> rows) {
  crossings_.leave_open(0);
  if (std::ranges::count(rows, kTokenFromSample, &Row::token) == 0) return {};
  return on_device(model_, plans_.segments()[0].device, crossings_.close_gate(0));
}

// Writes tokens that the step before has drawn where the step that was submitted will read them.
void Executor::tell_drawn(std::span<const Row> rows) {
  const StagedStep& embeds = on_[plans_.segments()[0].device].staged[flights_.next()];
  StepState& state = *static_cast<StepState*>(embeds.step.buffer().mapped);
  const DeviceMemory& logged = on_.ends().staged[flights_.next()].tokens;
  auto* const log = on_.apart() ? static_cast<uint32_t*>(logged.buffer().mapped) : nullptr;
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].token != kTokenFromSample) continue;
    state.row[t].token = drawn(rows[t].sequence, rows[t].position - 1);
    if (log) log[t] = state.row[t].token;
  }
  upload_.forget_rows();
}

// Submits a segment behind its gate.
Status Executor::submit_segment(const PlannedStep& plan, size_t index, std::span<const Row> rows) {
  const Segment& segment = plans_.segments()[index];
  const GretaGraph& graph = *plan.graphs[index];
  Stream& stream = *on_[segment.device].stream;
  if (index) GRETA_TRY(crossings_.close_gate(index));
  GRETA_TRY(crossings_.receive(segment, plan.key.tokens));
  if (segment.ends() && on_.apart()) GRETA_TRY(upload_.log_tokens(rows));
  if (!graph.commands().empty())
    GRETA_TRY(segment.ends() ? run_last(graph, stream) : graph.run(stream));
  GRETA_TRY(crossings_.send(segment, plan.key.tokens));
  GRETA_TRY(segment.ends() ? end_segment(segment) : crossings_.signal_left(index));
  const Span span(model_.spans, SpanKind::Submit, "submit");
  return stream.submit();
}

// All segments are submitted before it is known what they read (Crossings). The step before may still run,
// and tokens that it draws are told to this one when it has ended. A failure opens all gates, and waits until
// what was submitted has ended; nobody reads what it makes.
Status Executor::run_in_advance(const PlannedStep& plan, std::span<const Row> rows) {
  struct Gates {
    Crossings& of;
    bool kept = false;
    ~Gates() {
      if (kept) return;
      const KeptErrorText why;
      of.let_all_go();
    }
  } gates{crossings_};
  const std::span<const Segment> segments = plans_.segments();
  sequences_.move_states();
  for (size_t i = 0; i < segments.size(); ++i)
    GRETA_TRY(on_device(model_, segments[i].device, submit_segment(plan, i, rows)));
  if (crossings_.is_closed(0)) {
    GRETA_TRY(flights_.land_all());
    tell_drawn(rows);
    GRETA_TRY(crossings_.open_gate(0));
  }
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    GRETA_TRY(crossings_.wait_left(i));
    crossings_.hand_on(segments[i], segments[i + 1], plan.key.tokens);
    GRETA_TRY(crossings_.open_gate(i + 1));
  }
  gates.kept = true;
  return {};
}

Status Executor::run(const PlannedStep& plan, std::span<const Row> rows) {
  return crossings_.in_advance() && !plan.key.brings ? run_in_advance(plan, rows) : run_segments(plan);
}

}  // namespace greta
