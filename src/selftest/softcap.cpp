#include <cmath>

#include "selftest/reference.h"

namespace greta::reference {

Values softcap(const Values& x, double cap) {
  Values y;
  for (const double value : x) y.push_back(cap * std::tanh(value / cap));
  return y;
}

}  // namespace greta::reference
