#include "selftest/reference/reference.h"

namespace greta::reference {

Values gemm(const Values& a, const Values& b, const Values& y, const Gemm& shape) {
  Values result;
  for (size_t m = 0; m < shape.m; ++m)
    for (size_t n = 0; n < shape.n; ++n) {
      double sum = 0;
      for (size_t k = 0; k < shape.k; ++k)
        sum += a[shape.a_turned ? k * shape.m + m : m * shape.k + k] *
               b[shape.b_turned ? n * shape.k + k : k * shape.n + n];
      result.push_back(shape.alpha * sum + (shape.beta == 0 ? 0 : shape.beta * y[m * shape.n + n]));
    }
  return result;
}

}  // namespace greta::reference
