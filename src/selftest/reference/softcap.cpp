#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values softcap(const Values& x, double cap, double scale) {
  Values y;
  for (const double value : x) y.push_back(cap > 0 ? cap * std::tanh(scale * value / cap) : scale * value);
  return y;
}

}  // namespace greta::reference
