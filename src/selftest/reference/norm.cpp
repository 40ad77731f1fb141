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

}  // namespace greta::reference
