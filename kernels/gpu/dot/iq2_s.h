// IQ2_S: a unit is two groups of a block, each of two points of 8 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

DOT_POINTS(uvec2, iq2_bytes)

struct Weights {
  uint points, signs, high, scales;
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, group = unit % 8;
  return Weights(load_word(part(row, kDepth, block, 0) + group * 4),
                 load_word(part(row, kDepth, block, 2) + group * 4),
                 load_u8(part(row, kDepth, block, 1) + group), load_u8(part(row, kDepth, block, 3) + group),
                 load_f16(part(row, kDepth, block, 4)));
}

uvec2 point_of(Weights w, int i) { return points[byte_of(w.points, i) | (w.high >> i * 2 & 3) << 8]; }

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(with_signs(uvec4(point_of(w, 0), point_of(w, 1)), w.signs), x.q0);
  const int high = dot16(with_signs(uvec4(point_of(w, 2), point_of(w, 3)), w.signs >> 16), x.q1);
  const vec2 scale = 0.125f + 0.25f * vec2(w.scales & 15, w.scales >> 4);
  return w.d * (scale.x * float(low) * x.scale0.x + scale.y * float(high) * x.scale1.x);
}
