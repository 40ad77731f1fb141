// Q4_1: a unit is a block; its first 16 weights are the low halves of the bytes.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  uint d_and_m;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit * QUANT_BYTES;
  return Weights(load_16(block + 4), load_word(block));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(w.q & 0x0f0f0f0f, x.q0), high = dot16((w.q >> 4) & 0x0f0f0f0f, x.q1);
  const vec2 d = unpackHalf2x16(w.d_and_m);
  return d.x * (float(low) * x.scale0.x + float(high) * x.scale1.x) + d.y * (x.scale0.y + x.scale1.y);
}
