// kv_write only changes the type of a value.
#include <cmath>
#include <cstring>

#include "kernels/abi/q8.h"
#include "selftest/reference/reference.h"

namespace greta::reference {

// f16: 11 significant bits, none smaller than 2^-24; nearbyint rounds halves to even.
static double half(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent;
  std::frexp(value, &exponent);
  const int unit = exponent - 11 > -24 ? exponent - 11 : -24;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, value) : rounded;
}

// Q8_0 has the values of the q8 format, with scales rounded to halves.
static Values blocks(const std::vector<float>& x) {
  const std::vector<uint8_t> row = convert_q8(x);
  Values out;
  for (size_t i = 0; i < x.size(); ++i) {
    float scale;
    memcpy(&scale, &row[q8_scales_at(x.size()) + i / 32 * sizeof scale], sizeof scale);
    out.push_back(double(int8_t(row[i])) * half(scale));
  }
  return out;
}

Values cached(const std::vector<float>& x, const char* type) {
  if (!strcmp(type, "q8_0")) return blocks(x);
  Values out;
  for (const float value : x) out.push_back(!strcmp(type, "f32") ? double(value) : half(value));
  return out;
}

}  // namespace greta::reference
