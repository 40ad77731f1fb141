#include "selftest/quant/quant.h"

#include <cmath>

namespace greta::reference {

#define LISTED_TYPE(name, id, block, bytes)
#define QUANT_TYPE(name, id, block, bytes) extern const Quant quant_##name;
#include "compute/quant_types.def"
#undef QUANT_TYPE

static constexpr const Quant* kQuants[] = {
#define LISTED_TYPE(name, id, block, bytes)
#define QUANT_TYPE(name, id, block, bytes) &quant_##name,
#include "compute/quant_types.def"
#undef QUANT_TYPE
};

std::span<const Quant* const> quants() { return kQuants; }

const Quant* find_quant(const char* name) {
  for (const Quant* quant : kQuants)
    if (!strcmp(quant->name, name)) return quant;
  return nullptr;
}

double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa ? double(NAN) : sign * double(INFINITY);
  return exponent ? sign * std::ldexp(1024 + mantissa, exponent - 25) : sign * std::ldexp(mantissa, -24);
}

// By search: positive halves are ordered as their bits.
uint16_t half_bits(double value) {
  if (std::isnan(value)) return 0x7e00;
  const double magnitude = std::fabs(value);
  uint16_t low = 0, high = 0x7bff;
  while (low < high) {
    const uint16_t middle = uint16_t((low + high + 1) / 2);
    if (half_value(middle) <= magnitude)
      low = middle;
    else
      high = uint16_t(middle - 1);
  }
  const bool up = low < 0x7bff && half_value(uint16_t(low + 1)) - magnitude < magnitude - half_value(low);
  return uint16_t((std::signbit(value) ? 0x8000 : 0) | (low + up));
}

double gaussian(Random& random) {
  std::normal_distribution<double> normal;
  return normal(random);
}

}  // namespace greta::reference
