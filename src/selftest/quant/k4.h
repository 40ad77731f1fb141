// Scale and minimum of a group of Q4_K and Q5_K: 6 bits each, from 12 bytes at byte 4 of the block.
#pragma once
#include "selftest/quant/quant.h"

namespace greta::reference {

inline uint32_t k4_scale(const uint8_t* block, uint32_t group) {
  if (group < 4) return bits_at(block, 4 + group, 0, 6);
  return bits_at(block, 12 + group - 4, 0, 4) + 16 * bits_at(block, 4 + group - 4, 6, 2);
}

inline uint32_t k4_min(const uint8_t* block, uint32_t group) {
  if (group < 4) return bits_at(block, 8 + group, 0, 6);
  return bits_at(block, 12 + group - 4, 4, 4) + 16 * bits_at(block, 8 + group - 4, 6, 2);
}

// d * scale * q - dmin * min
inline float k4_value(const uint8_t* block, uint32_t group, uint32_t q) {
  const float scale = half_at(block) * float(k4_scale(block, group));
  const float min = half_at(block + 2) * float(k4_min(block, group));
  const float product = scale * float(q);
  return product - min;
}

}  // namespace greta::reference
