#include <algorithm>
#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values gate(const Values& gate, const Values& up, Activation activation) {
  Values y;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double x = gate[i];
    const double silu = x / (1 + std::exp(-x));
    const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    // 0.5 x (1 + tanh(inner)) without the cancellation that tanh near -1 would bring
    const double gelu = x / (1 + std::exp(-2 * inner));
    const double g = std::min(x, 7.0), u = std::clamp(up[i], -7.0, 7.0);
    const double clamped = g / (1 + std::exp(-1.702 * g)) * (u + 1);
    y.push_back(activation == Activation::Clamped ? clamped
                                                  : (activation == Activation::Silu ? silu : gelu) * up[i]);
  }
  return y;
}

}  // namespace greta::reference
