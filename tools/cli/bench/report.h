// Prints the results of `greta-cli bench` as a table, or as CSV or JSON with llama-bench's keys.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/stages.h"
#include "console.h"
#include "greta.h"
#include "json.h"

namespace greta::cli {

struct BenchRow {
  std::string path, time, key_type, value_type, preset;
  uint32_t warm_up_runs = 0;  // that were not counted
  bool warm = true;           // the last two of them took equally long
  greta_model_info model;
  greta_device_info device;
  Json machine = Json::object();  // of machine_now() and the like, where results are saved
  std::string disturbed;          // of disturbance()
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

// Of texts whose tokens are guessed.
struct DraftNumbers {
  double plain_ts = 0, drafted_ts = 0;  // tokens per second without guesses and with them, of median times
  uint64_t drafted = 0, right = 0;      // guesses that were verified, and those that were right
  uint64_t steps = 0, tokens = 0;
  double tokens_per_step() const {
    return static_cast<double>(tokens) / static_cast<double>(steps > 0 ? steps : 1);
  }
  double speedup() const { return plain_ts > 0 ? drafted_ts / plain_ts : 0; }
  // How much longer a step takes than one without guesses, with what the guesses themselves cost.
  double step() const { return drafted_ts > 0 ? tokens_per_step() * plain_ts / drafted_ts : 0; }
};

std::string time_text();                                                    // of now, as rows have it
std::string test_name(uint32_t prompt, uint32_t generate, uint32_t depth);  // "pp512 @ d4096", "pp512+tg128"

class BenchReport {
 public:
  explicit BenchReport(std::string form) : form_(std::move(form)) {}
  std::string add(const BenchRow& row);  // returns what to print now
  std::string add(const BenchRow& row, const ServeNumbers& numbers, uint32_t streams,
                  const std::string& test);
  std::string add(const BenchRow& row, const DraftNumbers& numbers, const std::string& test);
  std::string finish();

 private:
  std::string add_json(Json json, bool first);
  std::string form_;
  size_t rows_ = 0;
  Json list_ = Json::array();
};

// Where results go.
struct BenchReports {
  BenchReport out, err, json{"json"}, csv{"csv"};  // the last two are saved
  std::string csv_text{};
  template <class... Results>
  void add(const Results&... results) {
    put(out.add(results...));
    write_error(err.add(results...));
    json.add(results...);
    csv_text += csv.add(results...);
  }
};

}  // namespace greta::cli
