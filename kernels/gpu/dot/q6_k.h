// Q6_K in planes: a unit is two groups, the first in the low halves of its bytes.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 low;
  uvec2 high;
  uint scales;  // two of 8 bits
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(unit_low(row, unit), unit_high(row, kDepth, unit),
                 unit_scales(row, kDepth, unit), load_f16(part(row, kDepth, unit / 8, 3)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16((w.low & 0x0f0f0f0f) | spread_high(w.high.x), x.q0);
  const int high = dot16((w.low >> 4 & 0x0f0f0f0f) | spread_high(w.high.y), x.q1);
  const float scale0 = float(bitfieldExtract(int(w.scales), 0, 8)),
              scale1 = float(bitfieldExtract(int(w.scales), 8, 8));
  return w.d * (scale0 * (float(low) * x.scale0.x - 32 * x.scale0.y) +
                scale1 * (float(high) * x.scale1.x - 32 * x.scale1.y));
}
