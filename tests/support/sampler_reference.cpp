#include "support/sampler_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

namespace greta::test {
namespace {

using Logits = std::vector<double>;

Logits softmax(const Logits& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  Logits p;
  for (const double l : logits) p.push_back(std::exp(l - max));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= total;
  return p;
}

// Sorts ids by rising value(id), then by id.
template <class Value>
void sort_by(std::vector<int32_t>* ids, Value value) {
  std::sort(ids->begin(), ids->end(),
            [&](int32_t a, int32_t b) { return value(a) != value(b) ? value(a) < value(b) : a < b; });
}

// The ids that are left, by falling logit, then by id.
std::vector<int32_t> ranking(const Logits& logits) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -INFINITY) ids.push_back(int32_t(i));
  sort_by(&ids, [&](int32_t id) { return -logits[size_t(id)]; });
  return ids;
}

Logits only(const Logits& logits, const std::vector<int32_t>& ids, size_t from, size_t to) {
  Logits out(logits.size(), -INFINITY);
  for (size_t i = from; i < to; ++i) out[size_t(ids[i])] = logits[size_t(ids[i])];
  return out;
}

// The shortest beginning of `ids` whose probability reaches `wanted`.
size_t reach(const Logits& p, const std::vector<int32_t>& ids, double wanted, bool beyond, double* margin) {
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    sum += p[size_t(ids[i])];
    *margin = std::min(*margin, std::fabs(sum - wanted));
    if (beyond ? sum > wanted : sum >= wanted) return i + 1;
  }
  return ids.size();
}

double entropy(const Logits& p) {
  double sum = 0;
  for (const double each : p)
    if (each > 0) sum -= each * std::log(each);
  return sum;
}

// The length of the longest end of `text` that also ends at `end`, and does not reach across a breaker.
size_t copy_length(const std::vector<int32_t>& text, size_t end, size_t most) {
  size_t n = 0;
  while (n < most && n < end && text[end - 1 - n] == text[text.size() - 1 - n]) ++n;
  return n;
}

Logits dry(const Logits& logits, const DrySettings& s, std::vector<int32_t> text) {
  if (s.last_n && text.size() > s.last_n) text.erase(text.begin(), text.end() - ptrdiff_t(s.last_n));
  size_t most = text.size();
  for (size_t at = text.size(); at-- > 0 && most == text.size();)
    for (const DryBreaker& breaker : s.breakers)
      if (breaker.token == text[at] && breaker.tail.empty()) most = text.size() - 1 - at;
  std::map<int32_t, size_t> longest;
  for (size_t end = 1; end < text.size(); ++end) {
    const size_t length = copy_length(text, end, most);
    if (length >= s.allowed_length) longest[text[end]] = std::max(longest[text[end]], length);
  }
  Logits out = logits;
  for (const auto& [token, length] : longest)
    out[size_t(token)] -= s.multiplier * std::pow(double(s.base), double(length - s.allowed_length));
  return out;
}

Logits penalise(const Logits& logits, const SamplerSettings& s, const std::vector<int32_t>& history) {
  std::map<int32_t, int> counts;
  for (size_t i = 0; i < std::min<size_t>(s.penalty_last_n, history.size()); ++i)
    ++counts[history[history.size() - 1 - i]];
  Logits out = logits;
  for (const auto& [token, count] : counts) {
    double& l = out[size_t(token)];
    l = l > 0 ? l / s.repeat : l * s.repeat;
    l -= double(s.frequency) * count + s.presence;
  }
  return out;
}

// The logits as the steps change them.
struct Chain {
  Logits l;
  const SamplerSettings& s;
  const std::vector<int32_t>& history;
  double xtc_draw;
  ReferenceChoice out;

  void truncate(size_t from, size_t to) {
    l = only(l, ranking(l), from, to);
    out.by_probability = true;
  }
  void temperature();
  void top_n_sigma();
  void typical_p();
  void min_p();
  void xtc();
  void mirostat(double mu);
  void run(SamplerStep step);
};

void Chain::temperature() {
  if (s.temperature == 0) return void(l = only(l, ranking(l), 0, 1));
  double t = s.temperature;
  if (s.dynamic_range > 0) {
    const double least = std::max(0.0, t - s.dynamic_range), most = t + s.dynamic_range;
    const double part = ranking(l).size() < 2 ? 1 : entropy(softmax(l)) / std::log(double(ranking(l).size()));
    t = least + (most - least) * std::pow(part, double(s.dynamic_exponent));
  }
  for (double& each : l) each /= t;
}

void Chain::top_n_sigma() {
  if (s.top_n_sigma <= 0) return;
  const auto ids = ranking(l);
  double mean = 0, square = 0;
  for (const int32_t id : ids) mean += l[size_t(id)];
  mean /= double(ids.size());
  for (const int32_t id : ids) square += std::pow(l[size_t(id)] - mean, 2);
  const double least = l[size_t(ids[0])] - s.top_n_sigma * std::sqrt(square / double(ids.size()));
  size_t count = 0;
  for (const int32_t id : ids) {
    count += l[size_t(id)] >= least;
    out.margin = std::min(out.margin, std::fabs(l[size_t(id)] - least));
  }
  truncate(0, count);
}

void Chain::typical_p() {
  if (s.typical_p >= 1) return;
  const Logits p = softmax(l);
  const double h = entropy(p);
  auto ids = ranking(l);
  sort_by(&ids, [&](int32_t id) { return std::fabs(-std::log(p[size_t(id)]) - h); });
  l = only(l, ids, 0, reach(p, ids, s.typical_p, true, &out.margin));
  out.by_probability = true;
}

void Chain::min_p() {
  if (s.min_p <= 0) return;
  const Logits p = softmax(l);
  const double best = *std::max_element(p.begin(), p.end());
  size_t count = 0;
  for (const double each : p) {
    count += each >= best * s.min_p;
    out.margin = std::min(out.margin, std::fabs(each / best - s.min_p));
  }
  truncate(0, count);
}

void Chain::xtc() {
  if (s.xtc_probability <= 0 || s.xtc_threshold > 0.5f) return;
  out.by_probability = true;
  if (xtc_draw >= s.xtc_probability) return;
  size_t count = 0;
  for (const double each : softmax(l)) {
    count += each >= s.xtc_threshold;
    out.margin = std::min(out.margin, std::fabs(each - s.xtc_threshold));
  }
  if (count >= 2) truncate(count - 1, ranking(l).size());
}

void Chain::mirostat(double mu) {
  temperature();
  const Logits p = softmax(l);
  size_t count = 0;
  for (const double each : p) count += each > 0 && -std::log2(each) <= mu;
  truncate(0, std::max<size_t>(count, 1));
}

void Chain::run(SamplerStep step) {
  switch (step) {
    case SamplerStep::Penalties:
      return void(l = penalise(l, s, history));
    case SamplerStep::Dry:
      if (s.dry.multiplier > 0) l = dry(l, s.dry, history);
      return;
    case SamplerStep::TopNSigma:
      return top_n_sigma();
    case SamplerStep::TopK:
      if (s.top_k) truncate(0, std::min<size_t>(s.top_k, ranking(l).size()));
      return;
    case SamplerStep::TypicalP:
      return typical_p();
    case SamplerStep::TopP:
      if (s.top_p < 1) truncate(0, reach(softmax(l), ranking(l), s.top_p, false, &out.margin));
      return;
    case SamplerStep::MinP:
      return min_p();
    case SamplerStep::Xtc:
      return xtc();
    case SamplerStep::Temperature:
      return temperature();
  }
}

}  // namespace

ReferenceChoice reference_chain(const std::vector<float>& given, const SamplerSettings& s,
                                const std::vector<int32_t>& history, double xtc_draw, double mu) {
  Chain chain{{given.begin(), given.end()}, s, history, xtc_draw, {{}, s.mirostat_tau > 0}};
  for (const LogitBias& each : s.bias) chain.l[size_t(each.token)] += each.bias;
  if (s.mirostat_tau > 0) {
    chain.mirostat(mu);
  } else {
    for (const SamplerStep step : s.order) chain.run(step);
  }
  chain.out.probability = softmax(chain.l);
  return chain.out;
}

int32_t reference_draw(const ReferenceChoice& choice, double draw, double* margin) {
  std::vector<int32_t> ids(choice.probability.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto& p = choice.probability;
  if (choice.by_probability) sort_by(&ids, [&](int32_t id) { return -p[size_t(id)]; });
  double sum = 0;
  int32_t chosen = -1;
  for (const int32_t id : ids) {
    sum += p[size_t(id)];
    if (p[size_t(id)] > 0) *margin = std::min(*margin, std::fabs(sum - draw));
    if (chosen < 0 && sum > draw) chosen = id;
  }
  return chosen;
}

}  // namespace greta::test
