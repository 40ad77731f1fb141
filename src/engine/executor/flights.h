// The steps of an executor that are under way, of which there are at most kFlights.
#pragma once
#include <optional>
#include <utility>

#include "engine/executor/executor_devices.h"
#include "engine/executor/launch_clock.h"

namespace greta {

// A step is recorded as the next flight. It is under way once it was submitted, until somebody waits for it.
class Flights {
 public:
  Flights(const Model& model, ExecutorDevices& on) : model_(model), on_(on) {}
  ~Flights();
  Status open();

  uint32_t next() const { return next_; }  // the flight that is being recorded or comes next
  // Keeps what listeners to spans are told of the step that is being recorded, as `name`, and gives its
  // number.
  uint64_t tell(const char* name, const LaunchClock::Step& step);
  // Runs a step's last segment. If it is the only one and someone listens to launches, events stand between
  // them.
  Status run_last(const GretaGraph& graph, Stream& stream, bool alone);
  Status signal_end(Stream& stream) { return stream.signal(flights_[next_].done); }
  uint32_t take_off();  // the step was submitted
  // Waits for a step that is under way. How it ended is kept for whoever submitted it.
  Status land(uint32_t flight);
  Status land_all();
  Status wait(uint32_t flight);
  void forget_launches();  // launches of steps so far are told no more
  void close();            // ends all; before what steps read goes
  // Waits for the device, which on a processor is to compute.
  template <class Wait>
  Status wait_for(uint64_t step, Wait&& wait) {
    Span span(model_.spans, SpanKind::Wait, "wait");
    span.event.number = step;
    const uint64_t begun = now_ns();
    const Status ended = wait();
    waited_ns_ += now_ns() - begun;
    return ended;
  }
  uint64_t waited_ns() const { return waited_ns_; }

 private:
  struct Flight {
    Event done;  // on the device of the output
    bool under_way = false;
    LaunchClock::Step step = {};  // while someone listens to spans
    const char* name = "step";    // as they hear of it
    std::optional<uint32_t> clock_set = {};
    Code outcome = Code::Ok;  // where it was waited for before its submitter did
  };
  void tell_end(Flight& flight);

  const Model& model_;
  ExecutorDevices& on_;
  Flight flights_[kFlights];
  uint32_t next_ = 0;
  uint64_t steps_ = 0;                // that were told to a listener
  uint64_t waited_ns_ = 0;
  std::optional<LaunchClock> clock_;  // where launches are listened to
};

}  // namespace greta
