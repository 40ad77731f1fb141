// Q5_1: a unit is a block; its first 16 weights are the low halves of the bytes, and the low half of the
// fifth bits.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  uint d_and_m, high;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit * QUANT_BYTES;
  const uvec2 head = uvec2_address(block).at[0];
  return Weights(load_16(block + 8), head.x, head.y);
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16((w.q & 0x0f0f0f0f) | spread_bits(w.high) << 4, x.q0);
  const int high = dot16(((w.q >> 4) & 0x0f0f0f0f) | spread_bits(w.high >> 16) << 4, x.q1);
  const vec2 d = unpackHalf2x16(w.d_and_m);
  return d.x * (float(low) * x.scale0.x + float(high) * x.scale1.x) + d.y * (x.scale0.y + x.scale1.y);
}
