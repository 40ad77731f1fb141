// Q5_0: a unit is a block; its first 16 weights are the low halves of the bytes, and the low half of the
// fifth bits.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  uint high;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(load_16(part(row, kDepth, unit, 0)), load_word(part(row, kDepth, unit, 1)),
                 load_f16(part(row, kDepth, unit, 2)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16((w.q & 0x0f0f0f0f) | spread_bits(w.high) << 4, x.q0);
  const int high = dot16(((w.q >> 4) & 0x0f0f0f0f) | spread_bits(w.high >> 16) << 4, x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x - 16 * (x.scale0.y + x.scale1.y));
}
