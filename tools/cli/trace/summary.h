// What a timeline comes to: where the time of steps goes, on the device and on the host.
#pragma once
#include <string>
#include <vector>

#include "bench/stages.h"
#include "trace/formats.h"

namespace greta::cli {

// Steps that read a prompt, or that write a token of each stream. Those in which a plan was made are counted
// apart, since they happen once.
struct StepSum {
  std::string kind;  // "prompt", "decode", "first"
  uint64_t steps = 0, tokens = 0, ns = 0, median_ns = 0;
  uint64_t device_ns = 0, record_ns = 0, submit_ns = 0, wait_ns = 0;  // record without submit
  BenchProfile work = {};  // by stage and kernel, of all these steps
};

struct HostSum {
  std::string track, name;
  uint64_t count = 0, ns = 0;
};

struct Summary {
  std::vector<StepSum> steps;  // kinds that there were
  std::vector<HostSum> host;   // by track, the longest first
  uint64_t clock_error_ns = 0;
  uint64_t out_of_place = 0;  // spans that do not lie in their step, or that overlap another on their device
};

// `streams` is the number of texts that are written at once.
Summary sum_up(const std::vector<TraceSpan>& spans, uint32_t streams);
Json summary_json(const Summary& summary, const Roofs& roofs);
Json counters_json(const std::vector<TraceCounter>& counters);  // their least, middle and highest values
std::string counters_text(const std::vector<TraceCounter>& counters);
std::string summary_text(const Summary& summary, const Roofs& roofs);

}  // namespace greta::cli
