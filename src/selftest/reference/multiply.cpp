#include "kernels/abi/multiply.h"

#include <algorithm>
#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values multiply(const Values& x, const Values& by, uint32_t factor) {
  Values y;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back(by[i] * (factor == kFactorLogistic   ? 1 / (1 + std::exp(-x[i]))
                         : factor == kFactorPositive ? std::max(x[i], 0.0)
                                                     : x[i]));
  return y;
}

}  // namespace greta::reference
