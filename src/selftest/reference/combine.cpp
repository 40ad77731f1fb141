#include "selftest/reference/reference.h"

namespace greta::reference {

Values combine(const Values& x, const Values& weights, uint32_t width, uint32_t used) {
  const size_t tokens = weights.size() / used;
  Values y(tokens * width);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t j = 0; j < used; ++j)
      for (size_t i = 0; i < width; ++i)
        y[t * width + i] += weights[t * used + j] * x[(t * used + j) * width + i];
  return y;
}

}  // namespace greta::reference
