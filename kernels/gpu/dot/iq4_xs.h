// IQ4_XS: a unit is a group of a block; its first 16 weights are the low halves of the bytes.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq4_rows.h"

struct Weights {
  uvec4 q;
  uvec2 head;  // d, high two bits of 8 scales; low four bits
};

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  return Weights(load_16(block + 8 + unit % 8 * 16), uvec2_address(block).at[0]);
}

float dot_unit(Weights w, uint unit, Values x) {
  const uint group = unit % 8, scale = (w.head.y >> group * 4 & 15) | (w.head.x >> 16 + group * 2 & 3) << 4;
  const int low = dot16(iq4_bytes(w.q), x.q0), high = dot16(iq4_bytes(w.q >> 4), x.q1);
  return unpackHalf2x16(w.head.x).x * float(int(scale) - 32) *
         (float(low) * x.scale0.x + float(high) * x.scale1.x);
}
