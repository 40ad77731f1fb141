#include <algorithm>
#include <cmath>
#include <limits>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values softmax(const Values& scores, const Values& sinks, size_t width, bool logarithm) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  Values y(scores.size());
  for (size_t row = 0; row < scores.size() / width; ++row) {
    const auto first = scores.begin() + ptrdiff_t(row * width), last = first + ptrdiff_t(width);
    const double sink = sinks.empty() ? kNone : sinks[row];
    const double most = std::max(sink, *std::max_element(first, last));
    double sum = most == kNone ? 0 : std::exp(sink - most);
    for (auto each = first; each != last && most != kNone; ++each) sum += std::exp(*each - most);
    for (size_t i = row * width; i < (row + 1) * width; ++i)
      if (sum == 0)
        y[i] = logarithm ? kNone : 0;
      else
        y[i] = logarithm ? scores[i] - most - std::log(sum) : std::exp(scores[i] - most) / sum;
  }
  return y;
}

}  // namespace greta::reference
