#include <algorithm>
#include <cmath>
#include <numeric>

#include "selftest/reference.h"

namespace greta::reference {

Routing route(const Values& logits, uint32_t experts, uint32_t used, bool normalise) {
  Routing out;
  for (size_t row = 0; row < logits.size(); row += experts) {
    Ids order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const double of_a = logits[row + a], of_b = logits[row + b];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    const double max = logits[row + order[0]];
    double sum = 0, chosen = 0;
    for (uint32_t e = 0; e < experts; ++e) sum += std::exp(logits[row + e] - max);
    for (uint32_t j = 0; j < used; ++j) chosen += std::exp(logits[row + order[j]] - max) / sum;
    for (uint32_t j = 0; j < used; ++j) {
      out.ids.push_back(order[j]);
      out.weights.push_back(std::exp(logits[row + order[j]] - max) / sum / (normalise ? chosen : 1));
    }
  }
  return out;
}

}  // namespace greta::reference
