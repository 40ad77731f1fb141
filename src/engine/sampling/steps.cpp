// What each sampler step does. Probabilities are proportional to e^(logit - max), in double.
#include "engine/sampling/steps.h"

#include <algorithm>
#include <cmath>

#include "text/text.h"

namespace greta {
namespace {

bool before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

double sum_of_weights(const Candidates& c, double max) {
  double total = 0;
  for (const Candidate& each : c.list) total += std::exp(each.logit - max);
  return total;
}

// The entropy -sum p log p, in nats.
double entropy_of(const Candidates& c, double max, double total) {
  double entropy = 0;
  for (const Candidate& each : c.list) {
    const double p = std::exp(each.logit - max) / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

// Rounds as the device's kernel does, whose logits are float.
double penalised(double logit, uint32_t count, const SamplerSettings& s) {
  if (s.repeat != 1) logit = float(logit > 0 ? float(logit) / s.repeat : float(logit) * s.repeat);
  if (s.frequency != 0 || s.presence != 0) logit = float(logit) - (s.frequency * float(count) + s.presence);
  return std::clamp(logit, -kLargestLogit, kLargestLogit);
}

void penalties(SamplerTurn& turn) {
  const size_t count = std::min<size_t>(turn.settings.penalty_last_n, turn.history.size());
  std::vector<int32_t> recent(turn.history.end() - ptrdiff_t(count), turn.history.end());
  std::sort(recent.begin(), recent.end());
  for (Candidate& each : turn.candidates.list) {
    const auto [first, last] = std::equal_range(recent.begin(), recent.end(), each.id);
    if (first != last) each.logit = penalised(each.logit, uint32_t(last - first), turn.settings);
  }
  turn.candidates.sorted = 0;
}

void top_n_sigma(SamplerTurn& turn) {
  Candidates& c = turn.candidates;
  double mean = 0, variance = 0;
  for (const Candidate& each : c.list) mean += each.logit / double(c.list.size());
  for (const Candidate& each : c.list)
    variance += (each.logit - mean) * (each.logit - mean) / double(c.list.size());
  const double least = c.max() - turn.settings.top_n_sigma * std::sqrt(variance);
  std::erase_if(c.list, [=](const Candidate& each) { return each.logit < least; });
  c.sorted = std::min(c.sorted, c.list.size());
}

void top_k(SamplerTurn& turn) {
  const size_t count = std::min<size_t>(turn.settings.top_k, turn.candidates.list.size());
  turn.candidates.sort_to(count);
  turn.candidates.keep(count);
}

// Keeps the candidates whose surprise is nearest to the entropy, until their probabilities sum up to p.
void typical_p(SamplerTurn& turn) {
  Candidates& c = turn.candidates;
  const double max = c.max(), total = sum_of_weights(c, max), entropy = entropy_of(c, max, total);
  struct Typical {
    double distance;
    Candidate candidate;
  };
  std::vector<Typical> all;
  all.reserve(c.list.size());
  for (const Candidate& each : c.list)
    all.push_back({std::fabs(std::log(total) - (each.logit - max) - entropy), each});
  std::sort(all.begin(), all.end(), [](const Typical& a, const Typical& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.candidate.id < b.candidate.id;
  });
  size_t count = 0;
  for (double sum = 0; count < all.size() && sum <= turn.settings.typical_p; ++count)
    sum += std::exp(all[count].candidate.logit - max) / total;
  for (size_t i = 0; i < count; ++i) c.list[i] = all[i].candidate;
  c.list.resize(count);
  c.sorted = 0;
}

void top_p(SamplerTurn& turn) {
  Candidates& c = turn.candidates;
  const double max = c.max(), wanted = turn.settings.top_p * sum_of_weights(c, max);
  size_t count = 0;
  for (double sum = 0; count < c.list.size() && (count == 0 || sum < wanted); ++count) {
    c.sort_to(count + 1);
    sum += std::exp(c.list[count].logit - max);
  }
  c.keep(count);
}

void min_p(SamplerTurn& turn) {
  Candidates& c = turn.candidates;
  const double max = c.max(), least = turn.settings.min_p;
  std::erase_if(c.list, [=](const Candidate& each) { return std::exp(each.logit - max) < least; });
  c.sorted = std::min(c.sorted, c.list.size());  // of the sorted candidates, only the last ones were removed
}

void xtc(SamplerTurn& turn) {
  Candidates& c = turn.candidates;
  if (c.list.size() < 2) return;
  if (philox_draw(turn.settings.seed, turn.position, 1) >= turn.settings.xtc_probability) return;
  const double max = c.max(), wanted = turn.settings.xtc_threshold * sum_of_weights(c, max);
  size_t count = 0;
  for (; count < c.list.size(); ++count) {
    c.sort_to(count + 1);
    if (std::exp(c.list[count].logit - max) < wanted) break;
  }
  if (count < 2) return;
  c.list.erase(c.list.begin(), c.list.begin() + ptrdiff_t(count - 1));
  c.sorted -= count - 1;
}

// The temperature grows with the entropy, as a share of the largest possible entropy.
double dynamic_temperature(SamplerTurn& turn) {
  const SamplerSettings& s = turn.settings;
  Candidates& c = turn.candidates;
  const double least = std::max(0.0, double(s.temperature) - s.dynamic_range);
  const double most = double(s.temperature) + s.dynamic_range;
  if (c.list.size() < 2) return most;
  const double max = c.max(), entropy = entropy_of(c, max, sum_of_weights(c, max));
  const double part = std::clamp(entropy / std::log(double(c.list.size())), 0.0, 1.0);
  return least + (most - least) * std::pow(part, double(s.dynamic_exponent));
}

void temperature(SamplerTurn& turn) {
  const SamplerSettings& s = turn.settings;
  Candidates& c = turn.candidates;
  const double t =
      s.temperature > 0 && s.dynamic_range > 0 ? dynamic_temperature(turn) : double(s.temperature);
  if (t <= 0) {
    c.sort_to(1);
    c.keep(1);
    return;
  }
  const double max = c.max();  // subtracted first, so that a tiny temperature overflows nothing
  for (Candidate& each : c.list) each.logit = (each.logit - max) / t;
}

using S = const SamplerSettings&;
const SamplerStepInfo kSteps[] = {
    {{"penalties"},
     false,
     [](S s) { return s.penalty_last_n > 0 && (s.repeat != 1 || s.frequency != 0 || s.presence != 0); },
     penalties},
    {{"dry"}, false, [](S s) { return s.dry.multiplier > 0; }, apply_dry},
    {{"top_n_sigma", "top-n-sigma", "top-nsigma"}, true, [](S s) { return s.top_n_sigma > 0; }, top_n_sigma},
    {{"top_k", "top-k"}, true, [](S s) { return s.top_k > 0; }, top_k},
    {{"typ_p", "typical_p", "typical-p", "typical", "typ-p", "typ"},
     true,
     [](S s) { return s.typical_p < 1; },
     typical_p},
    {{"top_p", "top-p", "nucleus"}, true, [](S s) { return s.top_p < 1; }, top_p},
    {{"min_p", "min-p"}, true, [](S s) { return s.min_p > 0; }, min_p},
    {{"xtc"}, true, [](S s) { return s.xtc_probability > 0 && s.xtc_threshold <= 0.5f; }, xtc},
    {{"temperature", "temp"},
     false,
     [](S s) { return s.temperature != 1 || s.dynamic_range > 0; },
     temperature},
};

}  // namespace

const SamplerStepInfo& step_info(SamplerStep step) { return kSteps[uint32_t(step)]; }

std::vector<SamplerStep> default_sampler_order() {
  std::vector<SamplerStep> order;
  for (size_t i = 0; i < std::size(kSteps); ++i) order.push_back(SamplerStep(i));
  return order;
}

Status parse_sampler_order(std::string_view text, std::vector<SamplerStep>* out) {
  std::vector<SamplerStep> order;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto named = [&](const SamplerStepInfo& info) {
      return std::find(std::begin(info.names), std::end(info.names), name) != std::end(info.names);
    };
    const auto* found =
        name.empty() ? std::end(kSteps) : std::find_if(std::begin(kSteps), std::end(kSteps), named);
    if (found == std::end(kSteps))
      return fail(Code::Argument, "no sampler is called %s", Quoted(name).c_str());
    if (order.size() == kMaxSamplerSteps)
      return fail(Code::Argument, "more than %u samplers", kMaxSamplerSteps);
    order.push_back(SamplerStep(found - std::begin(kSteps)));
  }
  *out = std::move(order);
  return {};
}

double Candidates::max() const {
  if (sorted) return list[0].logit;
  double most = list[0].logit;
  for (const Candidate& each : list) most = std::max(most, each.logit);
  return most;
}

// Sorts in growing pieces, so that a walk from the best down sorts little more than it visits.
void Candidates::sort_to(size_t count) {
  if (count <= sorted) return;
  count = std::min(std::max({count, 2 * sorted, size_t(64)}), list.size());
  if (count < list.size())
    std::nth_element(list.begin() + ptrdiff_t(sorted), list.begin() + ptrdiff_t(count), list.end(), before);
  std::sort(list.begin() + ptrdiff_t(sorted), list.begin() + ptrdiff_t(count), before);
  sorted = count;
}

void Candidates::keep(size_t count) {
  list.resize(count);
  sorted = std::min(sorted, count);
}

}  // namespace greta
