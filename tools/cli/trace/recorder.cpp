#include "trace/recorder.h"

#include <algorithm>
#include <chrono>

namespace greta::cli {

const char* track_name(Track track) {
  constexpr const char* kNames[kTracks] = {"program", "library", "steps", "device", "requests"};
  return kNames[static_cast<size_t>(track)];
}

std::string line_name(Track track, uint32_t line) {
  return track_name(track) + (line > 0 ? " " + std::to_string(line + 1) : "");
}

uint64_t trace_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

static Track track_of(greta_span_kind kind) {
  switch (kind) {
    case GRETA_SPAN_STEP:
      return Track::Steps;
    case GRETA_SPAN_LAUNCH:
      return Track::Device;
    case GRETA_SPAN_REQUEST:
      return Track::Requests;
    default:
      return Track::Host;
  }
}

void Recorder::on_span(void* self, const greta_span* span) {
  static_cast<Recorder*>(self)->add({track_of(span->kind), 0, span->name, span->stage, span->begin_ns,
                                     span->end_ns, span->number, span->tokens, span->launches, span->bytes,
                                     span->flops, span->error_ns});
}

void Recorder::add(TraceSpan span) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spans_.push_back(std::move(span));
}

// Steps may run ahead of each other, and requests and threads of the host run side by side.
static void put_on_lines(std::vector<TraceSpan>* spans) {
  std::vector<std::vector<uint64_t>> open[kTracks];  // of each line the ends of spans that have not ended
  for (TraceSpan& span : *spans) {
    std::vector<std::vector<uint64_t>>& lines = open[static_cast<size_t>(span.track)];
    for (span.line = 0;; ++span.line) {
      if (span.line == lines.size()) lines.emplace_back();
      std::vector<uint64_t>& ends = lines[span.line];
      while (!ends.empty() && ends.back() <= span.begin_ns) ends.pop_back();
      if (!ends.empty() && ends.back() < span.end_ns) continue;
      ends.push_back(span.end_ns);
      break;
    }
  }
}

std::vector<TraceSpan> Recorder::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::sort(spans_.begin(), spans_.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  put_on_lines(&spans_);
  return std::move(spans_);
}

ProgramSpan::~ProgramSpan() {
  TraceSpan span;
  span.name = name_;
  span.begin_ns = begin_;
  span.end_ns = trace_now();
  recorder_.add(std::move(span));
}

}  // namespace greta::cli
