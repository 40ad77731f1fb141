#include "selftest/reference/reference.h"

namespace greta::reference {

Values scale(const Values& x, const Values& scales, const Values& bias, const Ids& ids, uint32_t width) {
  Values y;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t e = ids.empty() ? 0 : ids[i / width];
    y.push_back(scales[e] * x[i] + (bias.empty() ? 0 : bias[e * width + i % width]));
  }
  return y;
}

}  // namespace greta::reference
