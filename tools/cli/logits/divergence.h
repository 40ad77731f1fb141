// How the predictions of one model differ from those of another (usually the one that it was quantized from),
// with the statistics of llama-perplexity --kl-divergence.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "json.h"
#include "logits/file.h"

namespace greta::cli {

struct Estimate {
  double value = 0, error = 0;  // a mean, and its standard error
};

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    squares_ += value * value;
    ++count_;
  }
  uint64_t count() const { return count_; }
  Estimate estimate() const;

 private:
  double sum_ = 0, squares_ = 0;
  uint64_t count_ = 0;
};

// exp of a mean of -log(probability). The error is carried over to first order, as everywhere here.
Estimate perplexity(const Estimate& surprise);

class Divergence {
 public:
  // Adds one prediction.
  // logits [vocab_size], total: their log_total; base: what the other model predicted; token: what really
  // followed
  void add(const float* logits, double total, const Prediction& base, int32_t token);

  static std::string chunk_heading();
  std::string chunk_text(uint64_t chunk) const;  // a line with the figures up to that chunk
  std::string text() const;
  Json json() const;  // probabilities and shares are between 0 and 1

 private:
  struct Perplexities {
    Estimate own, base, log_ratio, ratio, difference;
    double correlation;  // correlation of the two surprises; NaN where one of them is constant
  };
  Perplexities perplexities() const;
  double covariance() const;  // covariance of the means of the two surprises
  Estimate delta_rms() const;
  Estimate same_top() const;

  Mean surprise_, base_surprise_, kld_, delta_, delta_squared_;
  double products_ = 0;  // sum of surprise * base surprise
  uint64_t same_top_ = 0;
  std::vector<float> klds_, deltas_;  // a value for each prediction, for the percentiles
};

}  // namespace greta::cli
