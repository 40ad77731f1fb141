#include <algorithm>
#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values attention(const Values& q, const Values& keys, const Values& values, const Values& sinks,
                 const Attention& shape) {
  const size_t positions = keys.size() / (size_t(shape.kv_heads) * shape.key_width);
  const size_t first = shape.window && shape.window < positions ? positions - shape.window : 0;
  Values y(size_t(shape.heads) * shape.value_width);
  for (size_t h = 0; h < shape.heads; ++h) {
    const size_t kv = h / (shape.heads / shape.kv_heads);
    Values scores;
    for (size_t s = first; s < positions; ++s) {
      double score = 0;
      for (size_t i = 0; i < shape.key_width; ++i)
        score += q[h * shape.key_width + i] * keys[(s * shape.kv_heads + kv) * shape.key_width + i];
      score *= shape.scale;
      if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
      scores.push_back(score);
    }
    double max = *std::max_element(scores.begin(), scores.end());
    if (!sinks.empty()) max = std::max(max, sinks[h]);
    double sum = sinks.empty() ? 0 : std::exp(sinks[h] - max);
    for (const double score : scores) sum += std::exp(score - max);
    for (size_t s = first; s < positions; ++s)
      for (size_t i = 0; i < shape.value_width; ++i)
        y[h * shape.value_width + i] += std::exp(scores[s - first] - max) / sum *
                                        values[(s * shape.kv_heads + kv) * shape.value_width + i];
  }
  return y;
}

}  // namespace greta::reference
