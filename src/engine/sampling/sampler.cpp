#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "engine/sampling/steps.h"
#include "graph/graph.h"

namespace greta {

// Philox4x32-10 (Salmon et al. 2011), the same as in kernels/cpu/sample/philox.h.
float philox_draw(uint64_t seed, uint32_t position, uint32_t draw) {
  uint32_t c[4] = {position, draw, 0, 0};
  uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xd2511f53u) * c[0], b = uint64_t(0xcd9e8d57u) * c[2];
    c[0] = uint32_t(b >> 32) ^ c[1] ^ key0;
    c[1] = uint32_t(b);
    c[2] = uint32_t(a >> 32) ^ c[3] ^ key1;
    c[3] = uint32_t(a);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return float(c[0] >> 8) * 0x1p-24f;
}

Status check_sampling(const SamplerSettings& s) {
  struct Range {
    const char* what;
    float value, least, most;
  };
  constexpr float kMost = 1e6f;
  const Range ranges[] = {
      {"temperature", s.temperature, 0, kMost},
      {"the range of the temperature", s.dynamic_range, 0, kMost},
      {"the exponent of the temperature", s.dynamic_exponent, 1e-3f, 1e3f},
      {"top_p", s.top_p, 1e-6f, 1},
      {"min_p", s.min_p, 0, 1},
      {"typical_p", s.typical_p, 1e-6f, 1},
      {"top_n_sigma", s.top_n_sigma, 0, kMost},
      {"the probability of XTC", s.xtc_probability, 0, 1},
      {"the threshold of XTC", s.xtc_threshold, 0, 1},
      {"the penalty for repeats", s.repeat, 1e-3f, 1e3f},
      {"the penalty for frequency", s.frequency, -kMost, kMost},
      {"the penalty for presence", s.presence, -kMost, kMost},
      {"tau of mirostat", s.mirostat_tau, 0, 1e3f},
      {"eta of mirostat", s.mirostat_eta, 0, 1e3f},
      {"the multiplier of DRY", s.dry.multiplier, 0, kMost},
      {"the base of DRY", s.dry.base, 1, kMost},
  };
  for (const Range& r : ranges)
    if (!(r.value >= r.least && r.value <= r.most))  // NaN is in no range
      return fail(Code::Argument, "%s is %g, expected %g to %g", r.what, double(r.value), double(r.least),
                  double(r.most));
  for (const LogitBias& each : s.bias)
    if (!(each.bias <= kMost && (each.bias >= -kMost || each.bias == -INFINITY)))
      return fail(Code::Argument, "the bias of token %d is %g, expected %g to %g or -infinity", each.token,
                  double(each.bias), -double(kMost), double(kMost));
  return {};
}

static bool fits_device(const SamplerSettings& s) {
  if (s.filter.call || !s.bias.empty() || s.mirostat_tau > 0 || s.dynamic_range > 0) return false;
  static constexpr SamplerStep kDeviceOrder[] = {SamplerStep::Penalties, SamplerStep::TopK, SamplerStep::TopP,
                                                 SamplerStep::MinP, SamplerStep::Temperature};
  const SamplerStep* next = std::begin(kDeviceOrder);
  for (const SamplerStep step : s.order) {
    if (!step_info(step).active(s)) continue;
    next = std::find(next, std::end(kDeviceOrder), step);
    if (next == std::end(kDeviceOrder)) return false;
    ++next;
    if (step == SamplerStep::Penalties && s.penalty_last_n > kMaxPenalised) return false;
  }
  return true;
}

void Sampler::set(SamplerSettings settings) {
  auto next = std::make_shared<const SamplerSettings>(std::move(settings));
  if (next->mirostat_tau != settings_->mirostat_tau || next->mirostat_eta != settings_->mirostat_eta)
    mirostat_.clear();
  on_device_ = fits_device(*next);
  settings_ = std::move(next);
}

void Sampler::truncate(size_t position) {
  while (!mirostat_.empty() && mirostat_.back().position >= position) mirostat_.pop_back();
}

void Sampler::move_back(uint32_t count) {
  std::erase_if(mirostat_, [&](const Surprise& each) { return each.position < count; });
  for (Surprise& each : mirostat_) each.position -= count;
}

Status no_finite_logit() {
  return fail(
      Code::File,
      "the model gave logits of which none is finite, so there is no token to draw: its weights are damaged, "
      "or its numbers overflow");
}

// Makes the candidates in order of id. Tokens whose logit is NaN or -infinity are left out.
void Sampler::fill(std::span<const float> logits, const uint64_t* allowed) {
  std::vector<Candidate>& list = candidates_.list;
  list.clear();
  list.reserve(logits.size());
  candidates_.sorted = 0;
  const auto is_allowed = [&](size_t i) { return !allowed || (allowed[i / 64] >> (i % 64) & 1); };
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= -float(kLargestLogit) && is_allowed(i))
      list.push_back({std::min(double(logits[i]), kLargestLogit), int32_t(i)});
}

// Keeps the candidates whose surprise is at most mu bits. Basu et al. 2021, "Mirostat", algorithm 2.
void Sampler::mirostat(uint32_t position) {
  Candidates& c = candidates_;
  truncate(position);
  const double mu = mirostat_.empty() ? 2 * double(settings_->mirostat_tau) : double(mirostat_.back().mu);
  double total = 0;
  const double max = c.max();
  for (const Candidate& each : c.list) total += std::exp(each.logit - max);
  size_t count = 0;
  for (; count < c.list.size(); ++count) {
    c.sort_to(count + 1);
    if (-std::log2(std::exp(c.list[count].logit - max) / total) > mu) break;
  }
  c.keep(std::max<size_t>(count, 1));
  mirostat_.push_back({position, float(mu)});
}

Status Sampler::choose(std::span<const float> logits, const uint64_t* allowed,
                       std::span<const int32_t> history, int32_t* out) {
  const SamplerSettings& s = *settings_;
  const uint32_t position = history.empty() ? 0 : uint32_t(history.size() - 1);
  const auto finite = [](float logit) { return std::fabs(logit) < float(kLargestLogit); };
  if (std::ranges::none_of(logits, finite)) return no_finite_logit();
  if (s.filter.call || !s.bias.empty()) {
    filtered_.assign(logits.begin(), logits.end());
    logits = filtered_;
  }
  const auto filter = [&] {
    return s.filter.call(s.filter.user, filtered_.data(), filtered_.size(), history.data(), history.size());
  };
  if (s.filter.call && call_back("logit filter", filter))
    return fail(Code::Cancelled, "the logit filter asked to stop");
  for (const LogitBias& each : s.bias)
    if (uint32_t(each.token) < filtered_.size()) filtered_[uint32_t(each.token)] += each.bias;
  fill(logits, allowed);
  if (candidates_.list.empty())
    return fail(Code::Argument,
                "every token is forbidden, by a bias, the logit filter or the grammar: what is left has "
                "a logit of -infinity or NaN");

  SamplerTurn turn{s, candidates_, history, position};
  bool ordered = s.mirostat_tau > 0;
  if (ordered) {
    step_info(SamplerStep::Temperature).apply(turn);
    mirostat(position);
  } else {
    for (const SamplerStep step : s.order) {
      const SamplerStepInfo& info = step_info(step);
      if (!info.active(s)) continue;
      info.apply(turn);
      ordered = ordered || info.truncates;
    }
  }
  if (ordered) candidates_.sort_to(candidates_.list.size());

  // Takes the first candidate at which the running sum passes the draw.
  const double max = candidates_.max(), uniform = philox_draw(s.seed, position, 0);
  double total = 0, sum = 0, chosen_weight = 0;
  for (const Candidate& each : candidates_.list) total += std::exp(each.logit - max);
  for (const Candidate& each : candidates_.list) {
    const double weight = std::exp(each.logit - max);
    if (weight > 0) *out = each.id, chosen_weight = weight;
    sum += weight;
    if (sum > uniform * total) break;
  }
  if (s.mirostat_tau > 0) {
    const double error = -std::log2(chosen_weight / total) - double(s.mirostat_tau);
    mirostat_.back().mu = float(double(mirostat_.back().mu) - double(s.mirostat_eta) * error);
  }
  return {};
}

}  // namespace greta
