// kv_write only changes the type of a value.
#include <cmath>
#include <cstring>

#include "selftest/reference.h"

namespace greta::reference {

double cached(double value, const char* type) {
  if (!strcmp(type, "f32")) return double(float(value));
  // f16: 11 significant bits, none smaller than 2^-24; nearbyint rounds halves to even.
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent;
  std::frexp(value, &exponent);
  const int unit = exponent - 11 > -24 ? exponent - 11 : -24;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, value) : rounded;
}

}  // namespace greta::reference
