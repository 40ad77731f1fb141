#include "engine/rope.h"

#include <cmath>

namespace greta {

void fill_rope_table(const Shape& shape, const std::vector<float>& factors, uint32_t context, float* table) {
  const uint32_t pairs = shape.rope_width / 2;
  std::vector<double> frequency(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    frequency[i] = std::pow(double(shape.rope_base), -2.0 * i / shape.rope_width) / double(shape.rope_scale);
    if (!factors.empty()) frequency[i] /= double(factors[i]);
  }
  for (uint32_t position = 0; position < context; ++position)
    for (uint32_t i = 0; i < pairs; ++i) {
      const double angle = position * frequency[i];
      *table++ = float(std::cos(angle));
      *table++ = float(std::sin(angle));
    }
}

}  // namespace greta
