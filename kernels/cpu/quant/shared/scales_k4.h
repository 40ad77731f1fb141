// The 12 bytes with which Q4_K and Q5_K store 8 scales and 8 minima of 6 bits.
#pragma once
#include <stdint.h>

namespace {

inline void scale_and_min(const uint8_t* packed, uint32_t i, uint8_t* scale, uint8_t* min) {
  if (i < 4) {
    *scale = packed[i] & 63;
    *min = packed[i + 4] & 63;
  } else {
    *scale = uint8_t((packed[i + 4] & 15) | ((packed[i - 4] >> 6) << 4));
    *min = uint8_t((packed[i + 4] >> 4) | ((packed[i] >> 6) << 4));
  }
}

}  // namespace
