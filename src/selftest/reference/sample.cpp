// Sampling as kernels/abi/step_state.h describes it: penalties, top-k, top-p, min-p, temperature, draw.
#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/abi/step_state.h"
#include "selftest/reference/reference.h"

namespace greta::reference {
namespace {

struct Candidate {
  double logit;
  uint32_t id;
};

// Philox4x32-10 with counter {position, 0, 0, 0}: the top 24 bits of its first word.
double uniform(uint64_t seed, uint32_t position) {
  uint32_t c[4] = {position, 0, 0, 0}, key[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = c[0] * uint64_t(0xD2511F53), b = c[2] * uint64_t(0xCD9E8D57);
    const uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b),
                              uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return (c[0] >> 8) / 16777216.0;
}

std::vector<Candidate> penalised(const std::vector<float>& logits, const Ids& recent,
                                 const Sampling& params) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) all.push_back({double(logits[i]), uint32_t(i)});
  const size_t last_n = std::min<size_t>({params.repeat_last_n, recent.size(), size_t(kMaxPenalised)});
  std::map<uint32_t, uint32_t> times;
  for (size_t i = recent.size() - last_n; i < recent.size(); ++i) ++times[recent[i]];
  for (const auto& [id, count] : times) {
    double& logit = all[id].logit;
    if (params.repeat_penalty > 0)
      logit = float(logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty);
    logit = float(logit - (params.frequency * count + params.presence));
  }
  return all;
}

// Keeps what top-p and then min-p keep, and notes how near a decision was to turning.
void filter(const Sampling& params, std::vector<Candidate>* kept, double* margin) {
  const double max = kept->front().logit;
  double total = 0, sum = 0;
  for (const Candidate& c : *kept) total += std::exp(c.logit - max);
  const bool top_p = params.top_p > 0 && params.top_p < 1;
  size_t count = 0;
  for (; count < kept->size(); ++count) {
    const double weight = std::exp((*kept)[count].logit - max);
    if (top_p && count) *margin = std::min(*margin, std::fabs(sum / total - params.top_p));
    if (params.min_p > 0 && count) *margin = std::min(*margin, std::fabs(weight - params.min_p));
    if (count && ((top_p && sum >= params.top_p * total) || weight < params.min_p)) break;
    sum += weight;
  }
  kept->resize(count);
}

}  // namespace

Draw sample(const std::vector<float>& logits, const Ids& recent, uint32_t position, const Sampling& params) {
  std::vector<Candidate> kept = penalised(logits, recent, params);
  const bool filtered = params.top_k || (params.top_p > 0 && params.top_p < 1) || params.min_p > 0;
  if (filtered || params.temperature <= 0)
    std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
  if (params.temperature <= 0) return {kept[0].id, 1};
  Draw out = {0, 1};
  if (params.top_k && params.top_k < kept.size()) kept.resize(params.top_k);
  if (filtered) filter(params, &kept, &out.margin);
  double max = kept[0].logit, total = 0, sum = 0;
  for (const Candidate& c : kept) max = std::max(max, c.logit);
  for (const Candidate& c : kept) total += std::exp((c.logit - max) / params.temperature);
  const double u = uniform(params.seed, position);
  bool chosen = false;
  for (const Candidate& c : kept) {
    sum += std::exp((c.logit - max) / params.temperature) / total;
    if (&c != &kept.back()) out.margin = std::min(out.margin, std::fabs(sum - u));
    if (!chosen) out.id = c.id;
    chosen = chosen || sum > u;
  }
  return out;
}

}  // namespace greta::reference
