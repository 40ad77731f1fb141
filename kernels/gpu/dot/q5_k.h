// Q5_K in planes: as Q4_K, with a fifth bit.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q, head;
  uint high;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(unit_low(row, unit), block_head(row, kDepth, unit / 8), unit_high(row, kDepth, unit));
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16((w.q & 0x0f0f0f0f) | first_high(w.high), x.q0);
  const int high = dot16((w.q >> 4 & 0x0f0f0f0f) | last_high(w.high), x.q1);
  const uvec2 scales = plane_scales(w.head, unit % 8);
  const vec2 d = unpackHalf2x16(w.head.x);
  return d.x * float(scales.x) * (float(low) * x.scale0.x + float(high) * x.scale1.x) -
         d.y * float(scales.y) * (x.scale0.y + x.scale1.y);
}
