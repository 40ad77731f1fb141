// IQ1_M: a unit is two groups of a block, each of two points of 8 weights. Weights are taken 8 times, plus 9:
// 8 * code, and 2 more where delta is positive.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/iq_rows.h"

DOT_POINTS(uint, iq1_nibbles)

struct Weights {
  uint points, more;  // low bits; four times 3 high bits, set for the negative delta
  uvec2 scales;       // and d
};

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint group = unit % 8;
  return Weights(load_word(block + group * 4), load_u16(block + 32 + group * 2),
                 uvec2_address(block + 48).at[0]);
}

uvec2 point_of(Weights w, int i) {
  const uint high = w.more >> i * 4, codes = points[byte_of(w.points, i) | (high & 7) << 8];
  return (uvec2(codes, codes >> 4) & 0x03030303) * 8 + ((high & 8) != 0 ? 0 : 0x02020202);
}

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(uvec4(point_of(w, 0), point_of(w, 1)), x.q0);
  const int high = dot16(uvec4(point_of(w, 2), point_of(w, 3)), x.q1);
  const uvec2 s = w.scales;
  const uint bits_of_d = (s.x >> 12 & 0xf) | (s.x >> 24 & 0xf0) | (s.y >> 4 & 0xf00) | (s.y >> 16 & 0xf000);
  const uint scales = ((unit & 4) == 0 ? s.x : s.y) >> (unit & 2) * 8 + (unit & 1) * 6;
  return unpackHalf2x16(bits_of_d).x * 0.125f *
         (float(2 * (scales & 7) + 1) * (float(low) * x.scale0.x - 9 * x.scale0.y) +
          float(2 * (scales >> 3 & 7) + 1) * (float(high) * x.scale1.x - 9 * x.scale1.y));
}
