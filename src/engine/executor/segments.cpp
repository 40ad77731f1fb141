// Runs a step's segments one after the other, and carries between devices what crosses.
#include <algorithm>
#include <cstring>

#include "engine/executor/memory.h"

namespace greta {

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

// Hands what a segment has left, and the host has waited for, to the next one. What the step before has
// handed to the device of the output may not be read yet, unless it has ended.
Status Executor::cross(const Segment& segment, const Segment& next, uint32_t tokens) {
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

// Submits the last segment, and runs those before it while the last one of the step before may still run. A
// step that fails between two segments leaves states of which it is not known whether it has changed them, as
// one whose submission fails.
Status Executor::run(const Planned& plan) {
  const bool on_processor = device_info(model_.placement.output()).host_functions;
  const std::span<const Segment> segments = this->segments(plan.key);
  GRETA_TRY(wait_for_idle(segments));
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint32_t d = segments[i].device;
    Stream& stream = *on_[d].stream;
    const GretaGraph& graph = *plan.graphs[i];
    const bool last = i + 1 == segments.size();
    GRETA_TRY(bring(segments[i]));
    if (!graph.commands().empty())
      GRETA_TRY(on_device(model_, d, last ? run_last(graph, stream) : graph.run(stream)));
    if (segments[i].brings != kNoLayer)
      GRETA_TRY(on_device(model_, d, on_[d].brought->note_use(segments[i].brings, stream)));
    if (last) {
      GRETA_TRY(on_device(model_, d, keep_states()));
      follow_draws();
      GRETA_TRY(on_device(model_, d, stream.signal(flights_[flight_].done)));
    }
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

}  // namespace greta
