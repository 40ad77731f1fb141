#include "selftest/reference/reference.h"

namespace greta::reference {

Values matmul_expert(const Values& weight, const Values& bias, const Values& x, const Ids& ids,
                     const Experts& shape) {
  Values y(ids.size() * shape.n);
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const size_t x_row = shape.x_slots == 1 ? slot / shape.used : slot;
    for (size_t n = 0; n < shape.n; ++n) {
      if (!bias.empty()) y[slot * shape.n + n] = bias[size_t(ids[slot]) * shape.n + n];
      for (size_t k = 0; k < shape.depth; ++k)
        y[slot * shape.n + n] +=
            weight[(size_t(ids[slot]) * shape.n + n) * shape.depth + k] * x[x_row * shape.depth + k];
    }
  }
  return y;
}

}  // namespace greta::reference
