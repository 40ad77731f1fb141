// Q4_0: a unit is a block; its first 16 weights are the low halves of the bytes.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(load_16(part(row, kDepth, unit, 0)), load_f16(part(row, kDepth, unit, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(w.q & 0x0f0f0f0f, x.q0), high = dot16((w.q >> 4) & 0x0f0f0f0f, x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x - 8 * (x.scale0.y + x.scale1.y));
}
