#include "selftest/reference/reference.h"

namespace greta::reference {

Values matmul(const Values& weight, const Values& x, uint32_t depth) {
  const size_t n_count = weight.size() / depth, t_count = x.size() / depth;
  Values y(t_count * n_count);
  for (size_t t = 0; t < t_count; ++t)
    for (size_t n = 0; n < n_count; ++n)
      for (size_t k = 0; k < depth; ++k) y[t * n_count + n] += weight[n * depth + k] * x[t * depth + k];
  return y;
}

}  // namespace greta::reference
