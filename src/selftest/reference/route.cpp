#include <algorithm>
#include <cmath>
#include <numeric>

#include "selftest/reference/reference.h"

namespace greta::reference {

namespace {

// Indices of scores, the best first, ties by index.
Ids ranking(const Values& scores) {
  Ids order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  return order;
}

Values probabilities(const double* logits, const Router& router) {
  Values p(router.experts);
  const double max = *std::max_element(logits, logits + router.experts);
  double sum = 0;
  for (uint32_t e = 0; e < router.experts; ++e) {
    p[e] = router.sigmoid ? 1 / (1 + std::exp(-logits[e])) : std::exp(logits[e] - max);
    sum += p[e];
  }
  if (!router.sigmoid)
    for (double& value : p) value /= sum;
  return p;
}

}  // namespace

Routing route(const Values& logits, const Values& bias, const Router& router) {
  Routing out;
  const uint32_t size = router.experts / router.groups;
  for (size_t row = 0; row < logits.size(); row += router.experts) {
    const Values p = probabilities(&logits[row], router);
    Values scores = p;
    for (uint32_t e = 0; e < router.experts && !bias.empty(); ++e) scores[e] += bias[e];
    Values group_scores;
    for (uint32_t g = 0; g < router.groups; ++g) {
      Values members(scores.begin() + g * size, scores.begin() + (g + 1) * size);
      std::sort(members.rbegin(), members.rend());
      group_scores.push_back(members[0] + (bias.empty() || size < 2 ? 0 : members[1]));
    }
    const Ids groups = ranking(group_scores);
    for (uint32_t i = router.groups_used; i < router.groups; ++i)
      for (uint32_t e = groups[i] * size; e < (groups[i] + 1) * size; ++e) scores[e] = -INFINITY;
    const Ids order = ranking(scores);
    double chosen = 0;
    for (uint32_t j = 0; j < router.used; ++j) chosen += p[order[j]];
    for (uint32_t j = 0; j < router.used; ++j) {
      out.ids.push_back(order[j]);
      out.weights.push_back(p[order[j]] / (router.normalise ? chosen : 1) * router.scale);
    }
  }
  return out;
}

}  // namespace greta::reference
