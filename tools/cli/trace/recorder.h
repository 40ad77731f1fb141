// Keeps what the library and the program tell of their work, for `greta-cli profile`.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "greta.h"

namespace greta::cli {

enum class Track : uint8_t { Program, Host, Steps, Device, Requests };
inline constexpr uint32_t kTracks = 5;
const char* track_name(Track track);

struct TraceSpan {
  Track track = Track::Program;
  uint32_t line = 0;        // of the track's lines, from 0: spans of one line nest, and do not cross
  std::string name, stage;  // of launches the kernel and the stage
  uint64_t begin_ns = 0, end_ns = 0;
  uint64_t number = 0;  // of the step; 0: none
  uint32_t tokens = 0, launches = 0;
  uint64_t bytes = 0, flops = 0, error_ns = 0;
  uint64_t ns() const { return end_ns - begin_ns; }
};

std::string line_name(Track track, uint32_t line);  // "requests", "requests 2"

uint64_t trace_now();  // of the clock of greta_span

class Recorder {
 public:
  static void on_span(void* self, const greta_span* span);  // for greta_runtime_options
  void add(TraceSpan span);
  // By begin, those that begin together the longest first, and each on the first line where it crosses none.
  std::vector<TraceSpan> take();

 private:
  std::mutex mutex_;
  std::vector<TraceSpan> spans_;
};

// A span of the program itself, as long as this object lives.
class ProgramSpan {
 public:
  ProgramSpan(Recorder& recorder, const char* name) : recorder_(recorder), name_(name), begin_(trace_now()) {}
  ~ProgramSpan();
  ProgramSpan(const ProgramSpan&) = delete;
  ProgramSpan& operator=(const ProgramSpan&) = delete;

 private:
  Recorder& recorder_;
  const char* name_;
  uint64_t begin_;
};

}  // namespace greta::cli
