// The times of a step's launches on its device, for whoever listens to them.
#pragma once
#include <optional>

#include "engine/executor/transformer.h"
#include "engine/model/spans.h"

namespace greta {

// Records a plan with an event where each of its barriers stands, and reads the events when the step is done.
// No barrier is added. Launches between two barriers may overlap, so they are told together.
//
// A device's clock is related to the host's by the driver where it can (Device::host_ns), and in any case by
// what must be so: a step does not begin before it is submitted, and it has ended when the host sees that it
// has.
class LaunchClock {
 public:
  LaunchClock(Device& device, uint32_t number, uint32_t sets)
      : device_(device), number_(number), sets_(sets) {}
  ~LaunchClock();
  LaunchClock(const LaunchClock&) = delete;
  LaunchClock& operator=(const LaunchClock&) = delete;

  // A step on its way to the device. What it costs is told by its live rows.
  struct Step {
    uint64_t number = 0, begun_ns = 0;
    uint32_t tokens = 0, outputs = 0, depth = 0;
  };
  // Sets go in turn: a step must have been read before so many others are recorded as there are sets.
  Status record(const GretaGraph& graph, const Step& step, Stream& stream, uint32_t* set);
  // Tells the launches of a step that the host saw ending at `end_ns`.
  Status read(uint32_t set, uint64_t end_ns, const Spans& spans);

 private:
  struct Set {
    const GretaGraph* graph = nullptr;
    Step step;
    std::vector<Event> events;  // one more than there are stages
    size_t used = 0;
    const Event& last() const { return events[used - 1]; }
  };
  Status relate(const Set& set, uint64_t end_ns);
  Device& device_;
  uint32_t number_;  // of the device in the runtime
  std::vector<Set> sets_;
  uint32_t next_ = 0;
  std::optional<uint32_t> last_;  // the set of the step that was read last
  uint64_t device_ns_ = 0;        // its time since the first event of all
  bool related_ = false;
  int64_t earliest_ = 0, latest_ = 0;  // host's time of the first event of all
  uint64_t told_ns_ = 0;               // the end of the last span
};

}  // namespace greta
