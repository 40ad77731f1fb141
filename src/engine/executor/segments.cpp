// Runs a step's segments one after the other, and carries between devices what crosses.
#include <algorithm>
#include <cstring>

#include "engine/executor/memory.h"

namespace greta {

// A segment of a token takes about so long, and a thread that sleeps wakes tens of microseconds late.
constexpr uint64_t kPatienceNs = 2'000'000;

Status Executor::barrier() {
  for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->barrier()));
  return {};
}

Status Executor::wait_all() {
  return guarded([&]() -> Status {
    for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
    return {};
  });
}

// Waits for the device, which on a processor is to compute.
template <class Wait>
Status Executor::wait_for(uint64_t step, Wait&& wait) {
  Span span(model_.spans, SpanKind::Wait, "wait");
  span.event.number = step;
  const uint64_t begun = now_ns();
  const Status ended = wait();
  waited_ns_ += now_ns() - begun;
  return ended;
}

// Waits for a segment whose successor was submitted, too.
Status Executor::wait_left(size_t segment) {
  const uint32_t d = segments_[segment].device;
  return wait_for(0, [&] { return on_device(model_, d, on_[d].stream->wait(left_[segment])); });
}

// Waits for a step that is under way. How it ended is kept for whoever submitted it.
Status Executor::land(uint32_t index) {
  Flight& flight = flights_[index];
  if (!flight.under_way) return {};
  flight.under_way = false;
  const Status ended = wait_for(flight.step.number, [&] {
    return on_device(model_, model_.placement.output(), ends().stream->wait(flight.done));
  });
  flight.outcome = ended.code;
  if (ended.ok()) tell_step(flight);
  return ended;
}

Status Executor::land_all() {
  for (uint32_t flight = 0; flight < kFlights; ++flight) GRETA_TRY(land((flight_ + flight) % kFlights));
  return {};
}

// What a step before has drawn is on the device of the output alone. The rows get it from the host.
Status Executor::know_tokens(std::span<const Row>* rows) {
  const auto unknown = [](const Row& row) { return row.token == kTokenFromSample; };
  if (std::ranges::none_of(*rows, unknown)) return {};
  GRETA_TRY(land_all());
  known_rows_.assign(rows->begin(), rows->end());
  for (Row& row : known_rows_)
    if (unknown(row)) row.token = drawn(row.sequence, row.position - 1);
  *rows = known_rows_;
  return {};
}

// Writes the token log of the device that draws, where another one embeds and logs only for itself.
Status Executor::log_tokens(std::span<const Row> rows) {
  OnDevice& on = ends();
  const DeviceMemory& staged = on.staged[flight_].tokens;
  uint32_t* tokens = static_cast<uint32_t*>(staged.buffer().mapped);
  constexpr uint64_t kBytes = sizeof(uint32_t);
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    const auto [token, position, sequence, output] = rows[first];
    const auto goes_on = [&] {
      const uint32_t next = position + uint32_t(end - first);
      return end < rows.size() && rows[end].sequence == sequence && rows[end].position == next &&
             (end == first || next % kPageTokens);
    };
    for (end = first; goes_on(); ++end) tokens[end] = rows[end].token;
    const uint64_t page = pools_[0].table(sequence)[position / kPageTokens];
    const uint64_t at = page * kPageTokens + position % kPageTokens, count = end - first;
    GRETA_TRY(on_device(model_, model_.placement.output(),
                        on.stream->copy(on.token_log.slice(at * kBytes, count * kBytes),
                                        staged.slice(first * kBytes, count * kBytes))));
  }
  return {};
}

// Host memory from which a step's residual comes to a device, or to which it goes.
Slice Executor::residual_between(uint32_t device, bool goes, uint32_t tokens) const {
  const Between& between = between_[device];
  const DeviceMemory& memory = goes && between.goes.buffer().handle ? between.goes : between.comes;
  return memory.slice(flight_ * residual_bytes(model_.shape, plan_.step_tokens),
                      residual_bytes(model_.shape, tokens));
}

// Records the copy of a residual that has come, or will have come when it runs.
Status Executor::receive(const Segment& segment, uint32_t tokens) {
  if (segment.arrives != Crossing::Residual) return {};
  const OnDevice& on = on_[segment.device];
  const Slice from = residual_between(segment.device, false, tokens);
  GRETA_TRY(on.stream->barrier());
  return on.stream->copy(on.residual.slice(0, from.bytes), from);
}

Status Executor::send(const Segment& segment, uint32_t tokens) {
  if (segment.leaves != Crossing::Residual) return {};
  const OnDevice& on = on_[segment.device];
  const Slice to = residual_between(segment.device, true, tokens);
  GRETA_TRY(on.stream->barrier());
  return on.stream->copy(to, on.residual.slice(0, to.bytes));
}

// Copies a residual from where it went to where it comes from, unless the devices share the place.
void Executor::hand_on(const Segment& segment, const Segment& next, uint32_t tokens) {
  const Slice from = residual_between(segment.device, true, tokens),
              to = residual_between(next.device, false, tokens);
  const auto* source = static_cast<const uint8_t*>(from.buffer->mapped) + from.offset;
  auto* target = static_cast<uint8_t*>(to.buffer->mapped) + to.offset;
  if (source != target) memcpy(target, source, from.bytes);
}

// Hands what a segment has left, and the host has waited for, to the next one. Residuals of the steps under
// way have places of their own. What the step before has handed to experts on the device of the output may
// not be read yet, unless it has ended.
Status Executor::cross(const Segment& segment, const Segment& next, uint32_t tokens) {
  if (segment.leaves == Crossing::Residual) return hand_on(segment, next, tokens), Status{};
  const OnDevice& from = on_[segment.device];
  const OnDevice& to = on_[next.device];
  if (&to == &ends()) GRETA_TRY(land_all());
  memcpy(to.arrives.buffer().mapped, from.leaves.buffer().mapped,
         uint64_t(tokens) * crossing_values(model_.shape, segment.leaves) * sizeof(float));
  return {};
}

// Does what is between a segment, which was submitted, and the next one.
Status Executor::cross_behind(std::span<const Segment> segments, size_t index, uint32_t tokens) {
  const Segment& segment = segments[index];
  Stream& stream = *on_[segment.device].stream;
  if (segment.leaves == Crossing::Stays) return stream.barrier();
  GRETA_TRY(wait_for(0, [&] { return on_device(model_, segment.device, stream.wait()); }));
  return cross(segment, segments[index + 1], tokens);
}

// Runs a step's last segment. If it is the only one and someone listens to launches, events stand between
// them.
Status Executor::run_last(const GretaGraph& graph, Stream& stream) {
  Flight& flight = flights_[flight_];
  flight.clock_set.reset();
  if (!model_.spans.launches || segments_.size() > 1) return graph.run(stream);
  const uint32_t d = model_.placement.output();
  if (!clock_) clock_.emplace(device(d), model_.devices[d].number, kFlights + 1);
  uint32_t set = 0;
  GRETA_TRY(clock_->record(graph, flight.step, stream, &set));
  flight.clock_set = set;
  return {};
}

// Tells a step that has ended, and its launches.
void Executor::tell_step(Flight& flight) {
  if (!model_.spans.on()) return;
  SpanEvent event;
  event.name = flight.name;
  event.begin_ns = flight.step.begun_ns;
  event.end_ns = now_ns();
  event.number = flight.step.number;
  event.tokens = flight.step.tokens;
  if (flight.clock_set) (void)clock_->read(*flight.clock_set, event.end_ns, model_.spans);
  model_.spans(event);
}

// Devices that have nothing to do in a step are waited for, so that uploads to them do not pile up.
Status Executor::wait_for_idle(std::span<const Segment> segments) {
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (std::ranges::find(segments, d, &Segment::device) == segments.end())
      GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  return {};
}

// Records what a step's last segment leaves behind its launches.
Status Executor::end_segment(const Segment& segment) {
  GRETA_TRY(keep_states());
  follow_draws();
  return on_[segment.device].stream->signal(flights_[flight_].done);
}

// Submits the last segment, and runs those before it while the last one of the step before may still run. A
// step that fails between two segments leaves states of which it is not known whether it has changed them, as
// one whose submission fails.
Status Executor::run_segments(const Planned& plan) {
  const bool on_processor = device_info(model_.placement.output()).host_functions;
  const std::span<const Segment> segments = this->segments(plan.key);
  GRETA_TRY(wait_for_idle(segments));
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint32_t d = segments[i].device;
    Stream& stream = *on_[d].stream;
    const GretaGraph& graph = *plan.graphs[i];
    const bool last = i + 1 == segments.size();
    GRETA_TRY(bring(segments[i]));
    GRETA_TRY(on_device(model_, d, receive(segments[i], plan.key.tokens)));
    if (!graph.commands().empty())
      GRETA_TRY(on_device(model_, d, last ? run_last(graph, stream) : graph.run(stream)));
    if (segments[i].brings != kNoLayer)
      GRETA_TRY(on_device(model_, d, on_[d].brought->note_use(segments[i].brings, stream)));
    GRETA_TRY(on_device(model_, d, last ? end_segment(segments[i]) : send(segments[i], plan.key.tokens)));
    move_states();
    {
      const Span span(model_.spans, SpanKind::Submit, "submit");
      GRETA_TRY(on_device(model_, d, stream.submit()));
    }
    if (last) break;
    if (on_processor) GRETA_TRY(land_all());  // it computes while it is waited for, beside this segment
    GRETA_TRY(begin_to_bring(segments.subspan(i + 1)));
    GRETA_TRY(cross_behind(segments, i, plan.key.tokens));
  }
  return {};
}

// Steps over several GPUs: all segments are submitted before it is known what they read. Each stands behind a
// gate, which the host opens when that has come. Then no submission is waited for between two segments, and
// none between two steps.

// Finds whether steps can be submitted in advance: their devices wait for the host, and nothing but residuals
// crosses. What a layer that drafts tokens reads is known too late.
Status Executor::open_gates() {
  const auto crosses_alone = [](const Segment& s) {
    return s.ends() || s.leaves == Crossing::Residual;
  };
  const auto waits = [&](const Segment& s) { return device_info(s.device).waits_for_host; };
  if (segments_.size() < 2 || has_head() || has_processor() || !std::ranges::all_of(segments_, waits) ||
      !std::ranges::all_of(segments_, crosses_alone))
    return {};
  left_.resize(segments_.size() - 1);
  for (size_t i = 0; i < left_.size(); ++i) {
    const uint32_t d = segments_[i].device;
    GRETA_TRY(on_device(model_, d, device(d).create_event(&left_[i], false)));
  }
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (!device_info(d).cpu_type) on_[d].stream->set_patience(kPatienceNs);
  gates_.assign(segments_.size(), 0);
  return {};
}

// If some tokens are still being drawn, what embeds them waits for the host, before it reads the rows.
Status Executor::await_tokens(std::span<const Row> rows) {
  gates_[0] = 0;
  if (std::ranges::count(rows, kTokenFromSample, &Row::token) == 0) return {};
  const uint32_t d = segments_[0].device;
  gates_[0] = ++between_[d].gate;
  return on_device(model_, d, on_[d].stream->wait_for_host(gates_[0]));
}

// Writes tokens that the step before has drawn where the step that was submitted will read them.
void Executor::tell_drawn(std::span<const Row> rows) {
  const Staged& embeds = on_[segments_[0].device].staged[flight_];
  StepState& state = *static_cast<StepState*>(embeds.step.buffer().mapped);
  auto* const log =
      apart() ? static_cast<uint32_t*>(ends().staged[flight_].tokens.buffer().mapped) : nullptr;
  for (size_t t = 0; t < rows.size(); ++t) {
    if (rows[t].token != kTokenFromSample) continue;
    state.row[t].token = drawn(rows[t].sequence, rows[t].position - 1);
    if (log) log[t] = state.row[t].token;
  }
  rows_there_.clear();
}

// Submits a segment behind its gate.
Status Executor::submit_segment(const Planned& plan, size_t index, std::span<const Row> rows) {
  const Segment& segment = segments_[index];
  const GretaGraph& graph = *plan.graphs[index];
  OnDevice& on = on_[segment.device];
  if (index) {
    gates_[index] = ++between_[segment.device].gate;
    GRETA_TRY(on.stream->wait_for_host(gates_[index]));
  }
  GRETA_TRY(receive(segment, plan.key.tokens));
  if (segment.ends() && apart()) GRETA_TRY(log_tokens(rows));
  if (!graph.commands().empty())
    GRETA_TRY(segment.ends() ? run_last(graph, *on.stream) : graph.run(*on.stream));
  GRETA_TRY(send(segment, plan.key.tokens));
  GRETA_TRY(segment.ends() ? end_segment(segment) : on.stream->signal(left_[index]));
  const Span span(model_.spans, SpanKind::Submit, "submit");
  return on.stream->submit();
}

// The step before may still run, and tokens that it draws are told to this one when it has ended. A failure
// opens all gates, and waits until what was submitted has ended; nobody reads what it makes.
Status Executor::run_in_advance(const Planned& plan, std::span<const Row> rows) {
  struct Gates {
    Executor& of;
    bool kept = false;
    ~Gates() {
      if (kept) return;
      const KeptErrorText why;
      for (size_t d = 0; d < of.on_.size(); ++d) (void)of.on_[d].stream->let_go(of.between_[d].gate);
      for (OnDevice& each : of.on_) drain(*each.stream);
    }
  } gates{*this};
  const auto open = [&](size_t index) {
    const uint32_t d = segments_[index].device;
    return on_device(model_, d, on_[d].stream->let_go(gates_[index]));
  };
  move_states();
  for (size_t i = 0; i < segments_.size(); ++i)
    GRETA_TRY(on_device(model_, segments_[i].device, submit_segment(plan, i, rows)));
  if (gates_[0]) {
    GRETA_TRY(land_all());
    tell_drawn(rows);
    GRETA_TRY(open(0));
  }
  for (size_t i = 0; i + 1 < segments_.size(); ++i) {
    GRETA_TRY(wait_left(i));
    hand_on(segments_[i], segments_[i + 1], plan.key.tokens);
    GRETA_TRY(open(i + 1));
  }
  gates.kept = true;
  return {};
}

Status Executor::run(const Planned& plan, std::span<const Row> rows) {
  return in_advance() && !plan.key.brings ? run_in_advance(plan, rows) : run_segments(plan);
}

}  // namespace greta
