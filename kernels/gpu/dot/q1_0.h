// Q1_0: a unit is 32 bits of a block.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uint bits;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(load_word(part(row, kDepth, unit / 4, 0) + unit % 4 * 4),
                 load_f16(part(row, kDepth, unit / 4, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(spread_bits(w.bits), x.q0), high = dot16(spread_bits(w.bits >> 16), x.q1);
  return w.d * (2 * (float(low) * x.scale0.x + float(high) * x.scale1.x) - (x.scale0.y + x.scale1.y));
}
