#include <algorithm>

#include "json.h"
#include "trace/formats.h"

namespace greta::cli {

std::vector<TraceLine> lines_of(const Trace& trace) {
  uint32_t most[kTracks] = {};
  for (const TraceSpan& span : trace.spans) {
    uint32_t& lines = most[static_cast<size_t>(span.track)];
    lines = std::max(lines, span.line);
  }
  std::vector<TraceLine> lines;
  for (uint32_t track = 0; track < kTracks; ++track)
    for (uint32_t line = 0; line <= most[track]; ++line)
      lines.push_back({1 + track + kTracks * line, line_name(static_cast<Track>(track), line)});
  return lines;
}

// Complete events ("X") in microseconds, on a thread for each line.
std::string chrome_json(const Trace& trace) {
  const auto microseconds = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", trace.program}}}});
  for (const TraceLine& line : lines_of(trace))
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 1},
                      {"tid", line.thread},
                      {"args", {{"name", line.name}}}});
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
                      {"tid", thread_of(span)},
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
