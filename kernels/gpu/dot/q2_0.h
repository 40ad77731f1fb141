// Q2_0: a unit is half a block, 4 weights to a byte.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec2 q;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(uvec2_address(part(row, kDepth, unit / 2, 0)).at[unit % 2],
                 load_f16(part(row, kDepth, unit / 2, 1)));
}

// The weights of four bytes.
uvec4 spread_pairs(uint q) {
  const uvec4 bytes = uvec4(q, q >> 8, q >> 16, q >> 24) & 255, halves = (bytes | bytes << 12) & 0x000f000f;
  return (halves | halves << 6) & 0x03030303;
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(spread_pairs(w.q.x), x.q0), high = dot16(spread_pairs(w.q.y), x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x - (x.scale0.y + x.scale1.y));
}
