// IQ3_XXS: a unit is a group of a block, eight points of 4 weights.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

// 4, 12, .. 52, 62
uint iq3_xxs_levels(uint point) {
  const uint codes = code_bytes(point, 3);
  return codes * 8 + 0x04040404 + (codes & codes >> 1 & codes >> 2 & 0x01010101) * 2;
}
DOT_POINTS(uint, iq3_xxs_levels)

struct Weights {
  uvec2 points;
  uint more;  // four times 7 signs, scale
  float d;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, group = unit % 8;
  return Weights(uvec2_address(part(row, kDepth, block, 0)).at[group],
                 load_word(part(row, kDepth, block, 1) + group * 4), load_f16(part(row, kDepth, block, 2)));
}

uvec4 points_of(uint four) {
  uvec4 values;
  [[unroll]] for (int i = 0; i < 4; ++i) values[i] = points[byte_of(four, i)];
  return values;
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(with_signs(points_of(w.points.x), even_signs_of_16(w.more)), x.q0);
  const int high = dot16(with_signs(points_of(w.points.y), even_signs_of_16(w.more >> 14)), x.q1);
  return w.d * (0.25f + 0.5f * float(w.more >> 28)) * (float(low) * x.scale0.x + float(high) * x.scale1.x);
}
