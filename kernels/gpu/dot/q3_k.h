// Q3_K: units as two_bits.h has them; the third bits of weights 32 i .. 32 i + 31 are bits i of 32 bytes.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/two_bits.h"

struct Weights {
  uvec4 q, high;
  uvec2 scales;  // low four bits, high two bits
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8;
  const uint64_t scales = part(row, kDepth, block, 2);
  return Weights(load_16(part(row, kDepth, block, 0) + two_bits_at(unit)),
                 load_16(part(row, kDepth, block, 1) + (unit & 1) * 16),
                 uvec2(load_word(scales + (unit & 2) * 2), load_word(scales + 8)),
                 load_f16(part(row, kDepth, block, 3)));
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 q = w.q >> (unit & 2) * 2, bits = w.high >> (unit & 6);
  const int low = dot16((q & 0x03030303) | (bits & 0x01010101) << 2, x.q0);
  const int high = dot16((q >> 2 & 0x03030303) | (bits & 0x02020202) << 1, x.q1);
  const uint shift = (unit & 1) * 8;  // the scales of the unit are in bytes 0 and 2 after it
  const uint scales =
      (w.scales.x >> shift + (unit & 4) & 0x000f000f) | (w.scales.y >> shift + (unit & 6) & 0x00030003) << 4;
  const float scale0 = float(int(scales & 255) - 32), scale1 = float(int(scales >> 16) - 32);
  return w.d * (scale0 * (float(low) * x.scale0.x - 4 * x.scale0.y) +
                scale1 * (float(high) * x.scale1.x - 4 * x.scale1.y));
}
