#include "selftest/reference/reference.h"

namespace greta::reference {

Values embed(const Values& weight, uint32_t width, const Ids& tokens, double scale) {
  Values y;
  for (const uint32_t token : tokens)
    for (uint32_t k = 0; k < width; ++k) y.push_back(scale * weight[size_t(token) * width + k]);
  return y;
}

}  // namespace greta::reference
