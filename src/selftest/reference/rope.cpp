#include "selftest/reference/reference.h"

namespace greta::reference {

Values rope(const Values& x, const Ids& positions, const Values& table, const Rope& shape) {
  Values y = x;
  for (size_t t = 0; t < positions.size(); ++t)
    for (size_t h = 0; h < shape.heads; ++h)
      for (size_t pair = 0; pair < shape.rope_width / 2; ++pair) {
        const size_t head = (t * shape.heads + h) * shape.head_width;
        const size_t a = head + (shape.halves ? pair : 2 * pair);
        const size_t b = head + (shape.halves ? pair + shape.rope_width / 2 : 2 * pair + 1);
        const size_t entry = positions[t] * size_t(shape.rope_width) + 2 * pair;
        const double cosine = table[entry], sine = table[entry + 1];
        y[a] = x[a] * cosine - x[b] * sine;
        y[b] = x[a] * sine + x[b] * cosine;
      }
  return y;
}

}  // namespace greta::reference
