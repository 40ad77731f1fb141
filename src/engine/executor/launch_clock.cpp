#include "engine/executor/launch_clock.h"

#include <algorithm>
#include <utility>

namespace greta {

LaunchClock::~LaunchClock() {
  for (Set& set : sets_)
    for (Event& event : set.events) device_.destroy(event);
}

Status LaunchClock::record(const GretaGraph& graph, const Step& step, Stream& stream, uint32_t* out) {
  *out = next_;
  Set& set = sets_[next_];
  next_ = (next_ + 1) % uint32_t(sets_.size());
  set.graph = &graph;
  set.step = step;
  set.used = graph.barriers() + 1;
  set.events.reserve(set.used);
  while (set.events.size() < set.used) {
    Event event;
    GRETA_TRY(device_.create_event(&event));
    set.events.push_back(event);
  }
  return graph.run(stream, {set.events.data(), set.used});
}

// Narrows the host's time at which the first event of all was: the step's first event came after its
// submission, its last one before the host saw the end. `device_ns_` is the time of the last one. Where the
// driver relates the clocks, what it tells of this step counts in place of what earlier ones have told.
Status LaunchClock::relate(const Set& set, uint64_t end_ns) {
  uint64_t gap = 0, length = 0;
  const Event& first = set.events[0];
  if (last_) GRETA_TRY(device_.elapsed_ns(sets_[*last_].last(), first, &gap));
  GRETA_TRY(device_.elapsed_ns(first, set.last(), &length));
  device_ns_ += gap;
  const int64_t earliest = int64_t(set.step.begun_ns) - int64_t(device_ns_);
  device_ns_ += length;
  const int64_t latest = int64_t(end_ns) - int64_t(device_ns_);
  uint64_t told = 0, error_ns = 0;
  if (device_.host_ns(set.last(), &told, &error_ns).ok()) {
    const int64_t middle = int64_t(told) - int64_t(device_ns_);
    latest_ = std::min(latest, std::max(middle + int64_t(error_ns), earliest));
    earliest_ = std::min(latest_, std::max(middle - int64_t(error_ns), earliest));
    return {};
  }
  clear_error_text();
  earliest_ = related_ ? std::max(earliest_, earliest) : earliest;
  latest_ = related_ ? std::min(latest_, latest) : latest;
  related_ = true;
  return {};
}

Status LaunchClock::read(uint32_t index, uint64_t end_ns, const Spans& spans) {
  Set& set = sets_[index];
  if (!set.graph) return {};
  const GretaGraph& graph = *std::exchange(set.graph, nullptr);
  GRETA_TRY(relate(set, end_ns));
  last_ = index;
  const std::span<const GretaGraph::Command> commands = graph.commands();
  uint64_t length = 0;
  GRETA_TRY(device_.elapsed_ns(set.events[0], set.last(), &length));
  const uint64_t begin = uint64_t(latest_ + int64_t(device_ns_ - length));
  size_t at = 0;
  for (size_t stage = 0; stage + 1 < set.used; ++stage) {
    uint64_t from = 0, to = 0;
    GRETA_TRY(device_.elapsed_ns(set.events[0], set.events[stage], &from));
    GRETA_TRY(device_.elapsed_ns(set.events[0], set.events[stage + 1], &to));
    SpanEvent event;
    event.kind = SpanKind::Launch;
    event.name = commands[at].row ? commands[at].row->name : "copy";
    event.stage = commands[at].part;
    event.device = number_;
    event.number = set.step.number;
    event.tokens = set.step.tokens;
    event.error_ns = uint64_t(std::max<int64_t>(0, latest_ - earliest_));
    event.begin_ns = std::max(begin + from, told_ns_);
    event.end_ns = told_ns_ = std::max(begin + to, event.begin_ns);
    for (bool first = true; at < commands.size() && (first || !commands[at].barrier_before); ++at) {
      const Cost cost = commands[at].cost(set.step.tokens, set.step.outputs, set.step.depth);
      event.bytes += cost.bytes;
      event.flops += cost.flops;
      ++event.launches;
      first = false;
    }
    spans(event);
  }
  return {};
}

}  // namespace greta
