// The points of the grids that IQ types share (kernels/tables), one value at a time.
#pragma once
#include "selftest/quant/quant.h"

namespace greta::reference {

// Value `i` of the points of IQ2: the numbers that 2 bits stand for.
inline float iq2_value(uint16_t point, uint32_t i) {
  static constexpr float kLevels[3] = {8, 25, 43};
  return kLevels[(point >> 2 * i) & 3];
}
inline float iq1_value(uint16_t point, uint32_t i) { return float((point >> 2 * i) & 3) - 1; }

// 7 of 8 signs are stored. The eighth makes the number of set ones even.
inline float even_sign(uint32_t seven, uint32_t i) {
  uint32_t sum = 0;
  for (uint32_t bit = 0; bit < 7; ++bit) sum += (seven >> bit) & 1;
  return (i < 7 ? (seven >> i) & 1 : sum % 2) ? -1.f : 1.f;
}

// d * (1/2 + scale) / 4, of IQ2
inline float iq2_scale(const uint8_t* block, uint32_t scale) {
  const float factor = half_at(block) * (0.5f + float(scale));
  return factor / 4;
}

}  // namespace greta::reference
