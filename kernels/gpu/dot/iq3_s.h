// IQ3_S: a unit is a group of a block, eight points of 4 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

uint iq3_s_levels(uint point) { return code_bytes(point, 3) * 2 + 0x01010101; }
DOT_POINTS(uint, iq3_s_levels)

struct Weights {
  uvec2 points;
  uint signs, high;
  uint scales;  // of two groups
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, group = unit % 8;
  return Weights(uvec2_address(part(row, kDepth, block, 0)).at[group],
                 load_word(part(row, kDepth, block, 2) + group * 4),
                 load_u8(part(row, kDepth, block, 1) + group),
                 load_u8(part(row, kDepth, block, 3) + group / 2), load_f16(part(row, kDepth, block, 4)));
}

// Four points: low bits in bytes, high bits in bits.
uvec4 points_of(uint low, uint high) {
  uvec4 values;
  [[unroll]] for (int i = 0; i < 4; ++i) values[i] = points[byte_of(low, i) | (high >> i & 1) << 8];
  return values;
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(with_signs(points_of(w.points.x, w.high), w.signs), x.q0);
  const int high = dot16(with_signs(points_of(w.points.y, w.high >> 4), w.signs >> 16), x.q1);
  const uint scale = 1 + 2 * (w.scales >> (unit & 1) * 4 & 15);
  return w.d * float(scale) * (float(low) * x.scale0.x + float(high) * x.scale1.x);
}
