// Counts and histograms of what was served, in Prometheus' text form under the names of llama.cpp and vLLM.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "jobs.h"

namespace greta::serve {

class Histogram {
 public:
  static constexpr std::array<double, 18> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                     1,     2.5,    5,     10,   20,    40,   80,  160,  640};
  void add(double seconds);
  // Its lines, without those that say what it is.
  std::string text(const std::string& name, const std::string& labels) const;

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

class Metrics {
 public:
  void ended(const Ended& ended);
  void gap(uint64_t ns);
  std::string text(greta_service* service, const std::string& model) const;

 private:
  std::string histograms(const std::string& labels) const;  // under the mutex

  mutable std::mutex mutex_;
  uint64_t prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0, prompt_ns_ = 0, generate_ns_ = 0;
  std::array<uint64_t, 8> reasons_{};  // by greta_stop_reason; the last: failures
  Histogram first_token_, gap_, queue_, whole_;
  std::array<Histogram, 4> first_by_length_, whole_by_length_;  // by the length of the prompt: kLengths
};

}  // namespace greta::serve
