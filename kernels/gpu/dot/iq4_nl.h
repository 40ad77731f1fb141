// IQ4_NL: a unit is a block; its first 16 weights are the low halves of the bytes.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq4_rows.h"

struct Weights {
  uvec4 q;
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  return Weights(load_16(part(row, kDepth, unit, 0)), load_f16(part(row, kDepth, unit, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(iq4_bytes(w.q), x.q0), high = dot16(iq4_bytes(w.q >> 4), x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x);
}
