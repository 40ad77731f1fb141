// Prints the results of `greta-cli bench` as a table, or as CSV or JSON with llama-bench's keys.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/stages.h"
#include "greta.h"
#include "json.h"

namespace greta::cli {

struct BenchRow {
  std::string path, time, key_type, value_type, preset;
  uint32_t warm_up_runs = 0;  // that were not counted
  bool warm = true;           // the last two of them took equally long
  greta_model_info model;
  greta_device_info device;
  Json machine = Json::object();  // of machine_now(), where results are saved
  uint32_t threads, prompt, generate, depth, batch;
  Roofs roofs;                       // arithmetic is measured only for a profile
  std::vector<uint64_t> samples_ns;  // one for each repetition
  BenchProfile profile;
};

// Of a service with several streams.
struct ServeNumbers {
  double prompt_ts = 0, generate_ts = 0;      // tokens per second of all streams together
  double gap_p50_ms = 0, gap_p99_ms = 0;      // between two tokens of a stream
  double first_p50_ms = 0, first_p99_ms = 0;  // from a request to its first token
  double alone_ts = 0;  // of a prompt without streams beside it, where that was measured
};

std::string test_name(uint32_t prompt, uint32_t generate, uint32_t depth);  // "pp512 @ d4096", "pp512+tg128"

class BenchReport {
 public:
  explicit BenchReport(std::string form) : form_(std::move(form)) {}
  std::string add(const BenchRow& row);  // returns what to print now
  std::string add(const BenchRow& row, const ServeNumbers& numbers, uint32_t streams,
                  const std::string& test);
  std::string finish();

 private:
  std::string add_json(Json json, bool first);
  std::string form_;
  size_t rows_ = 0;
  Json list_ = Json::array();
};

}  // namespace greta::cli
