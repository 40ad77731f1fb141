// IQ2_XS: a unit is two groups of a block, each of two points of 8 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

DOT_POINTS(uvec2, iq2_bytes)

struct Weights {
  uvec2 q;  // a group: twice 9 bits of point and 7 signs
  uint scales;
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8;
  return Weights(uvec2_address(part(row, kDepth, block, 0)).at[unit % 8],
                 load_u8(part(row, kDepth, block, 1) + unit % 8), load_f16(part(row, kDepth, block, 2)));
}

uvec4 signed_points(uint two) {
  const uvec4 values = uvec4(points[two & 511], points[two >> 16 & 511]);
  return with_signs(values, even_signs(two >> 9 & 127) | even_signs(two >> 25) << 8);
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(signed_points(w.q.x), x.q0), high = dot16(signed_points(w.q.y), x.q1);
  const vec2 scale = 0.125f + 0.25f * vec2(w.scales & 15, w.scales >> 4);
  return w.d * (scale.x * float(low) * x.scale0.x + scale.y * float(high) * x.scale1.x);
}
