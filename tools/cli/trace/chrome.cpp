#include <algorithm>

#include "json.h"
#include "trace/formats.h"

namespace greta::cli {

// Complete events ("X") in microseconds, on a thread for each track.
std::string chrome_json(const Trace& trace) {
  const auto microseconds = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", trace.program}}}});
  for (uint32_t i = 0; i < kTracks; ++i)
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 1},
                      {"tid", i + 1},
                      {"args", {{"name", track_name(static_cast<Track>(i))}}}});
  const uint64_t first = trace.spans.empty() ? 0 : trace.spans[0].begin_ns;
  for (const TraceSpan& span : trace.spans) {
    Json arguments = Json::object();
    if (span.number > 0) arguments["step"] = span.number;
    if (span.tokens > 0) arguments["tokens"] = span.tokens;
    if (span.launches > 0) arguments["launches"] = span.launches;
    if (span.bytes > 0) arguments["bytes"] = span.bytes;
    if (span.flops > 0) arguments["flops"] = span.flops;
    if (!span.stage.empty()) arguments["kernel"] = span.name;
    events.push_back({{"ph", "X"},
                      {"name", span.stage.empty() ? span.name : span.stage},
                      {"cat", track_name(span.track)},
                      {"pid", 1},
                      {"tid", static_cast<uint32_t>(span.track) + 1},
                      {"ts", microseconds(span.begin_ns - first)},
                      {"dur", microseconds(span.ns())},
                      {"args", arguments}});
  }
  for (const TraceCounter& counter : trace.counters)
    for (const TraceCounter::Value& value : counter.values)
      events.push_back({{"ph", "C"},
                        {"name", counter.name},
                        {"pid", 1},
                        {"ts", microseconds(value.ns - std::min(value.ns, first))},
                        {"args", {{"value", value.value}}}});
  return Json({{"displayTimeUnit", "ns"}, {"traceEvents", events}}).dump() + "\n";
}

}  // namespace greta::cli
