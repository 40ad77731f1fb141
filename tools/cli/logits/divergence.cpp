#include "logits/divergence.h"

#include <algorithm>
#include <cmath>

#include "console.h"

namespace greta::cli {
namespace {

constexpr double kKldPercents[] = {99.9, 99, 95, 90, 50, 10, 5, 1, 0.1};
constexpr double kDeltaPercents[] = {99.9, 99, 95, 90, 75, 50, 25, 10, 5, 1, 0.1};

// Interpolates between two values. `values` is sorted and not empty.
double percentile(const std::vector<float>& values, double percent) {
  const double at = percent / 100 * static_cast<double>(values.size() - 1);
  const size_t below = std::min(static_cast<size_t>(at), values.size() - 1);
  const double part = at - static_cast<double>(below);
  if (part == 0) return values[below];
  return (1 - part) * values[below] + part * values[below + 1];
}

std::vector<float> sorted(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// How values are printed: with a unit, and with the factor that converts to it.
struct Column {
  const char* name;
  int width, decimals;
  double factor;
  const char* unit;
};
constexpr Column kKldColumn = {"KLD", 10, 6, 1, ""};
constexpr Column kDeltaColumn = {"Δp", 6, 3, 100, "%"};

std::string line(const Column& column, const std::string& label, double value) {
  return format("%-7s %s: %*.*f%s\n", label.c_str(), column.name, column.width, column.decimals,
                column.factor * value, column.unit);
}

// Lines from the largest value to the smallest.
template <size_t N>
std::string distribution_text(const Column& column, const std::vector<float>& values,
                              const double (&percents)[N]) {
  std::string text = line(column, "Maximum", values.back());
  for (const double percent : percents) {
    const std::string label = percent == 50 ? "Median" : format("%4.1f%%", percent);
    text += line(column, label, percentile(values, percent));
  }
  return text + line(column, "Minimum", values.front());
}

std::string estimate_text(const char* label, const Estimate& estimate) {
  return format("%-30s: %10.6f ± %10.6f\n", label, estimate.value, estimate.error);
}

Json estimate_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

template <size_t N>
Json distribution_json(const Estimate& mean, const std::vector<float>& values, const double (&percents)[N]) {
  Json percentiles;
  for (const double percent : percents) percentiles[format("%g", percent)] = percentile(values, percent);
  return {{"mean", mean.value},
          {"error", mean.error},
          {"maximum", values.back()},
          {"percentiles", percentiles},
          {"minimum", values.front()}};
}

}  // namespace

Estimate Mean::estimate() const {
  if (count_ == 0) return {};
  const double n = static_cast<double>(count_);
  const double mean = sum_ / n;
  const double variance = squares_ / n - mean * mean;
  return {mean, variance > 0 && count_ > 1 ? std::sqrt(variance / (n - 1)) : 0};
}

Estimate perplexity(const Estimate& surprise) {
  const double value = std::exp(surprise.value);
  return {value, value * surprise.error};
}

void Divergence::add(const float* logits, double total, const Prediction& base, int32_t token) {
  const auto right = static_cast<size_t>(token);
  const double surprise = total - logits[right], base_surprise = -base.log_p[right];
  surprise_.add(surprise);
  base_surprise_.add(base_surprise);
  products_ += surprise * base_surprise;

  double kld = 0;
  size_t top = 0;
  for (size_t i = 0; i < base.p.size(); ++i) {
    if (base.p[i] > 0) kld += base.p[i] * (base.log_p[i] + total - logits[i]);
    if (logits[i] > logits[top]) top = i;
  }
  kld_.add(kld);
  klds_.push_back(static_cast<float>(kld));
  // Tokens may have the same code, and each of those is then the likeliest token of the base.
  if (base.log_p[top] >= *std::max_element(base.log_p.begin(), base.log_p.end())) ++same_top_;

  const double delta = std::exp(-surprise) - std::exp(-base_surprise);
  delta_.add(delta);
  delta_squared_.add(delta * delta);
  deltas_.push_back(static_cast<float>(delta));
}

double Divergence::covariance() const {
  const double n = static_cast<double>(surprise_.count());
  if (n < 2) return 0;
  return (products_ / n - surprise_.estimate().value * base_surprise_.estimate().value) / (n - 1);
}

// Both are measured on the same tokens, so that their errors cancel in part.
Divergence::Perplexities Divergence::perplexities() const {
  const Estimate surprise = surprise_.estimate(), base_surprise = base_surprise_.estimate();
  const auto error = [](double one, double other, double covariance) {
    return std::sqrt(std::max(one * one + other * other - 2 * covariance, 0.0));
  };
  const double shared = covariance();
  Perplexities all;
  all.own = perplexity(surprise);
  all.base = perplexity(base_surprise);
  all.correlation = shared / (surprise.error * base_surprise.error);
  all.log_ratio = {surprise.value - base_surprise.value, error(surprise.error, base_surprise.error, shared)};
  all.ratio.value = std::exp(all.log_ratio.value);
  all.ratio.error = all.ratio.value * all.log_ratio.error;
  all.difference = {all.own.value - all.base.value,
                    error(all.own.error, all.base.error, all.own.value * all.base.value * shared)};
  return all;
}

Estimate Divergence::delta_rms() const {
  const Estimate square = delta_squared_.estimate();
  const double rms = std::sqrt(square.value);
  return {rms, rms > 0 ? square.error / (2 * rms) : 0};
}

Estimate Divergence::same_top() const {
  const double n = static_cast<double>(surprise_.count());
  const double share = static_cast<double>(same_top_) / n;
  return {share, n > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : 0};
}

std::string Divergence::chunk_heading() {
  return "chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              "
         "Δp RMS            Same top p\n";
}

std::string Divergence::chunk_text(uint64_t chunk) const {
  const Perplexities ppl = perplexities();
  const Estimate kld = kld_.estimate(), rms = delta_rms(), top = same_top();
  return format(
      "%4llu    %9.4f ± %9.4f    %10.5f ± %10.5f    %10.5f ± %10.5f    %6.3f ± %6.3f %%    "
      "%6.3f ± %6.3f %%\n",
      static_cast<unsigned long long>(chunk), ppl.own.value, ppl.own.error, ppl.log_ratio.value,
      ppl.log_ratio.error, kld.value, kld.error, 100 * rms.value, 100 * rms.error, 100 * top.value,
      100 * top.error);
}

std::string Divergence::text() const {
  const Perplexities ppl = perplexities();
  const Estimate kld = kld_.estimate(), delta = delta_.estimate(), rms = delta_rms(), top = same_top();
  std::string text = "\n====== Perplexity statistics ======\n";
  text += estimate_text("Mean PPL(Q)", ppl.own);
  text += estimate_text("Mean PPL(base)", ppl.base);
  text += format("Cor(ln(PPL(Q)), ln(PPL(base))): %6.2f%%\n", 100 * ppl.correlation);
  text += estimate_text("Mean ln(PPL(Q)/PPL(base))", ppl.log_ratio);
  text += estimate_text("Mean PPL(Q)/PPL(base)", ppl.ratio);
  text += estimate_text("Mean PPL(Q)-PPL(base)", ppl.difference);

  text += "\n====== KL divergence statistics ======\n";
  text += format("Mean    KLD: %10.6f ± %10.6f\n", kld.value, kld.error);
  text += distribution_text(kKldColumn, sorted(klds_), kKldPercents);

  text += "\n====== Token probability statistics ======\n";
  text += format("Mean    Δp: %6.3f ± %5.3f %%\n", 100 * delta.value, 100 * delta.error);
  text += distribution_text(kDeltaColumn, sorted(deltas_), kDeltaPercents);
  text += format("RMS Δp    : %6.3f ± %5.3f %%\n", 100 * rms.value, 100 * rms.error);
  return text + format("Same top p: %6.3f ± %5.3f %%\n", 100 * top.value, 100 * top.error);
}

Json Divergence::json() const {
  const Perplexities ppl = perplexities();
  return {{"ppl_base", estimate_json(ppl.base)},
          {"ppl_ratio", estimate_json(ppl.ratio)},
          {"ln_ppl_ratio", estimate_json(ppl.log_ratio)},
          {"ppl_difference", estimate_json(ppl.difference)},
          {"correlation", ppl.correlation},
          {"kld", distribution_json(kld_.estimate(), sorted(klds_), kKldPercents)},
          {"delta_p", distribution_json(delta_.estimate(), sorted(deltas_), kDeltaPercents)},
          {"delta_p_rms", estimate_json(delta_rms())},
          {"same_top", estimate_json(same_top())}};
}

}  // namespace greta::cli
