// Q5_K in planes: as Q4_K, with a fifth bit.
#include "kernels/vulkan/rows.h"

struct Weights {
  uvec4 q;
  uint high, scales, d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(unit_low(row, kDepth, unit), unit_high(row, kDepth, unit), unit_scales(row, kDepth, unit), unit_d(row, kDepth, unit));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16((w.q & 0x0f0f0f0f) | first_high(w.high), x.q0);
  const int high = dot16((w.q >> 4 & 0x0f0f0f0f) | last_high(w.high), x.q1);
  const vec2 d = unpackHalf2x16(w.d);
  return d.x * float(w.scales & 255) * (float(low) * x.scale0.x + float(high) * x.scale1.x) -
         d.y * float(w.scales >> 8) * (x.scale0.y + x.scale1.y);
}
