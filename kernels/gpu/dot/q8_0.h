// Q8_0: a unit is a block.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q0, q1;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t q = part(row, kDepth, unit, 0);
  return Weights(load_16(q), load_16(q + 16), load_f16(part(row, kDepth, unit, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  return w.d * (float(dot16(w.q0, x.q0)) * x.scale0.x + float(dot16(w.q1, x.q1)) * x.scale1.x);
}
