// TQ2_0: units as two_bits.h has them.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/two_bits.h"

struct Weights {
  uvec4 q;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8;
  return Weights(load_16(part(row, kDepth, block, 0) + two_bits_at(unit)),
                 load_f16(part(row, kDepth, block, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 q = w.q >> (unit & 2) * 2;
  const int low = dot16(q & 0x03030303, x.q0), high = dot16(q >> 2 & 0x03030303, x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x - (x.scale0.y + x.scale1.y));
}
