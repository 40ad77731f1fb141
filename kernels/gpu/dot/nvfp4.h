// NVFP4: a unit is half a block, two groups of 16 weights, the first 8 of each in its bytes' low
// halves.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  uint scales;  // two of 8 bits
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 2 * QUANT_BYTES;
  return Weights(load_16(block + 4 + unit % 2 * 16), load_u16(block + unit % 2 * 2));
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 first = twice_plus_12(w.q), second = twice_plus_12(w.q >> 4);
  const int low = dot16(uvec4(first.xy, second.xy), x.q0), high = dot16(uvec4(first.zw, second.zw), x.q1);
  return half_scale(w.scales & 255) * (float(low) * x.scale0.x - 12 * x.scale0.y) +
         half_scale(w.scales >> 8) * (float(high) * x.scale1.x - 12 * x.scale1.y);
}
