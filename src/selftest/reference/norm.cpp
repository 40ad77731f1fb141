#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values norm(const Values& x, const Values& gain, double epsilon) {
  const size_t width = gain.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += x[row + i] * x[row + i];
    const double rms = std::sqrt(squares / double(width) + epsilon);
    for (size_t i = 0; i < width; ++i) y[row + i] = x[row + i] / rms * gain[i];
  }
  return y;
}

Values layer_norm(const Values& x, const Values& gain, const Values& bias, size_t width, double epsilon) {
  Values y(x.size());
  for (size_t head = 0; head < x.size(); head += width) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) sum += x[head + i];
    const double mean = sum / double(width);
    for (size_t i = 0; i < width; ++i) squares += (x[head + i] - mean) * (x[head + i] - mean);
    const double deviation = std::sqrt(squares / double(width) + epsilon);
    for (size_t i = head; i < head + width; ++i) {
      y[i] = (x[i] - mean) / deviation;
      if (!gain.empty()) y[i] *= gain[i % gain.size()];
      if (!bias.empty()) y[i] += bias[i % bias.size()];
    }
  }
  return y;
}

}  // namespace greta::reference
