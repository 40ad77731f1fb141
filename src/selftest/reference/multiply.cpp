#include "kernels/abi/multiply.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "selftest/reference/reference.h"

namespace greta::reference {

static double factor_of(double x, uint32_t factor, const XieluConstants& xielu) {
  switch (factor) {
    case kFactorLogistic:
      return 1 / (1 + std::exp(-x));
    case kFactorPositive:
      return std::max(x, 0.0);
    case kFactorGelu:
      return 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case kFactorGeluErf:
      return 0.5 * std::erfc(-x / std::numbers::sqrt2);
    case kFactorXielu:
      return xielu.linear + (x > 0   ? xielu.positive * x
                             : x < 0 ? xielu.negative * (std::expm1(x) / x - 1)
                                     : 0);
    case kFactorSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    default:
      return x;
  }
}

Values multiply(const Values& x, const Values& by, uint32_t factor, const XieluConstants& xielu) {
  Values y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(by[i] * factor_of(x[i], factor, xielu));
  return y;
}

}  // namespace greta::reference
