#include "selftest/reference/reference.h"

namespace greta::reference {

Values add(const Values& a, const Values& b, double scale) {
  Values y;
  for (size_t i = 0; i < a.size(); ++i) y.push_back(a[i] + scale * b[i]);
  return y;
}

}  // namespace greta::reference
