// IQ1_S: a unit is a group of a block, four points of 8 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

DOT_POINTS(uint, iq1_nibbles)

struct Weights {
  uint points, more;  // low bits; four times 3 high bits, scale, sign of delta
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, group = unit % 8;
  return Weights(load_word(part(row, kDepth, block, 0) + group * 4),
                 load_u16(part(row, kDepth, block, 1) + group * 2), load_f16(part(row, kDepth, block, 2)));
}

uvec2 point_of(Weights w, int i) {
  const uint codes = points[byte_of(w.points, i) | (w.more >> i * 3 & 7) << 8];
  return uvec2(codes, codes >> 4) & 0x03030303;
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(uvec4(point_of(w, 0), point_of(w, 1)), x.q0);
  const int high = dot16(uvec4(point_of(w, 2), point_of(w, 3)), x.q1);
  const float from = (w.more & 0x8000) != 0 ? -1.125f : -0.875f;  // what code 0 stands for
  return w.d * float(2 * (w.more >> 12 & 7) + 1) *
         (float(low) * x.scale0.x + float(high) * x.scale1.x + from * (x.scale0.y + x.scale1.y));
}
