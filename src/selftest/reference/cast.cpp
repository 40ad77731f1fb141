#include <algorithm>
#include <cmath>
#include <limits>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values cast(const Values& x, int bits, int least_exponent, double largest) {
  Values y;
  for (const double value : x) {
    if (value == 0 || !std::isfinite(value)) {
      y.push_back(value);
      continue;
    }
    const int exponent = std::max(std::ilogb(value), least_exponent);
    const double unit = std::ldexp(1.0, exponent - bits + 1);
    const double rounded = std::nearbyint(value / unit) * unit;  // halves to even
    y.push_back(std::fabs(rounded) > largest ? std::copysign(std::numeric_limits<double>::infinity(), value)
                                             : rounded);
  }
  return y;
}

}  // namespace greta::reference
