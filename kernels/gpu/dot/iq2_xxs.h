// IQ2_XXS: a unit is a group of a block, four points of 8 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

DOT_POINTS(uvec2, iq2_bytes)

struct Weights {
  uvec2 q;  // four points; four times 7 signs, scale
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8;
  return Weights(uvec2_address(part(row, kDepth, block, 0)).at[unit % 8],
                 load_f16(part(row, kDepth, block, 1)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 first = uvec4(points[byte_of(w.q.x, 0)], points[byte_of(w.q.x, 1)]);
  const uvec4 second = uvec4(points[byte_of(w.q.x, 2)], points[byte_of(w.q.x, 3)]);
  const int low = dot16(with_signs(first, even_signs_of_16(w.q.y)), x.q0);
  const int high = dot16(with_signs(second, even_signs_of_16(w.q.y >> 14)), x.q1);
  return w.d * (0.125f + 0.25f * float(w.q.y >> 28)) * (float(low) * x.scale0.x + float(high) * x.scale1.x);
}
