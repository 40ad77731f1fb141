#include "engine/executor/flights.h"

namespace greta {

Status Flights::open() {
  const uint32_t d = model_.placement.output();
  for (Flight& flight : flights_)
    GRETA_TRY(on_device(model_, d, on_.device(d).create_event(&flight.done, false)));
  return {};
}

Flights::~Flights() {
  for (Flight& flight : flights_) on_.device(model_.placement.output()).destroy(flight.done);
}

void Flights::close() {
  on_.drain_all();
  clock_.reset();
}

uint64_t Flights::tell(const char* name, const LaunchClock::Step& step) {
  Flight& flight = flights_[next_];
  flight.clock_set.reset();
  if (!model_.spans.on()) return 0;
  flight.step = step;
  flight.step.number = ++steps_;
  flight.name = name;
  return steps_;
}

Status Flights::run_last(const GretaGraph& graph, Stream& stream, bool alone) {
  Flight& flight = flights_[next_];
  if (!model_.spans.launches || !alone) return graph.run(stream);
  const uint32_t d = model_.placement.output();
  if (!clock_) clock_.emplace(on_.device(d), model_.devices[d].number, kFlights + 1);
  uint32_t set = 0;
  GRETA_TRY(clock_->record(graph, flight.step, stream, &set));
  flight.clock_set = set;
  return {};
}

uint32_t Flights::take_off() {
  flights_[next_].under_way = true;
  flights_[next_].outcome = Code::Ok;
  return std::exchange(next_, (next_ + 1) % kFlights);
}

Status Flights::land(uint32_t index) {
  Flight& flight = flights_[index];
  if (!flight.under_way) return {};
  flight.under_way = false;
  const Status ended = wait_for(flight.step.number, [&] {
    return on_device(model_, model_.placement.output(), on_.ends().stream->wait(flight.done));
  });
  flight.outcome = ended.code;
  if (ended.ok()) tell_end(flight);
  return ended;
}

Status Flights::land_all() {
  for (uint32_t flight = 0; flight < kFlights; ++flight) GRETA_TRY(land((next_ + flight) % kFlights));
  return {};
}

Status Flights::wait(uint32_t flight) {
  (void)land(flight);
  return {std::exchange(flights_[flight].outcome, Code::Ok)};
}

// Tells a step that has ended, and its launches.
void Flights::tell_end(Flight& flight) {
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

void Flights::forget_launches() {
  for (Flight& flight : flights_) flight.clock_set.reset();
}

}  // namespace greta
