// A timeline as a file: Chrome's JSON, which many viewers read, and Perfetto's own form.
#pragma once
#include <string>
#include <vector>

#include "trace/recorder.h"

namespace greta::cli {

struct TraceCounter {
  std::string name;
  struct Value {
    uint64_t ns;
    double value;
  };
  std::vector<Value> values;
};

struct Trace {
  std::string program;           // "greta-cli profile, tales-llama-7m on cpu"
  std::vector<TraceSpan> spans;  // as Recorder::take() sorts them
  std::vector<TraceCounter> counters;
};

// A line of the timeline as a thread with a number of its own, from 1.
struct TraceLine {
  uint32_t thread;
  std::string name;
};
inline uint32_t thread_of(const TraceSpan& span) {
  return 1 + static_cast<uint32_t>(span.track) + kTracks * span.line;
}
std::vector<TraceLine> lines_of(const Trace& trace);  // each track has one at least

std::string chrome_json(const Trace& trace);
std::string perfetto_trace(const Trace& trace);  // perfetto.protos.Trace

}  // namespace greta::cli
