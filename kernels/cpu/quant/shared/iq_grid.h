// The grids of the IQ types (kernels/tables) as bytes, and their signs.
#pragma once
#include <stdint.h>

namespace {

template <uint32_t kPoints, uint32_t kWidth>
struct IqGrid {
  alignas(64) int8_t point[kPoints][kWidth];
};

// Points of kWidth values; `levels` are the numbers that the values stand for.
template <uint32_t kWidth, uint32_t kPoints, uint32_t kLevels>
constexpr IqGrid<kPoints, kWidth> iq_grid(const uint16_t (&points)[kPoints],
                                          const int8_t (&levels)[kLevels]) {
  constexpr uint32_t bits = kWidth == 8 ? 2 : 3;
  IqGrid<kPoints, kWidth> grid = {};
  for (uint32_t p = 0; p < kPoints; ++p)
    for (uint32_t i = 0; i < kWidth; ++i)
      grid.point[p][i] = levels[(points[p] >> (i * bits)) & ((1u << bits) - 1)];
  return grid;
}

// IQ2_XXS, IQ2_XS and IQ3_XXS store 7 signs of 8; the eighth makes their count even. Bit set: negative.
inline uint32_t even_signs(uint32_t seven) { return seven | uint32_t(__builtin_parity(seven)) << 7; }

inline float with_sign(float value, uint32_t signs, uint32_t bit) {
  return (signs >> bit) & 1 ? -value : value;
}

}  // namespace
