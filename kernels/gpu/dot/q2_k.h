// Q2_K: units as two_bits.h has them.
#include "kernels/gpu/unit_int8.h"
#include "kernels/gpu/dot/shared/two_bits.h"

struct Weights {
  uvec4 q;
  uint scales;  // four times scale and minimum; those of the unit in bytes 0 and 2 after a shift by 8 h
  uint d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  return Weights(load_16(block + 16 + two_bits_at(unit)), load_word(block + (unit & 6) * 2),
                 load_word(block + 80));
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 q = w.q >> (unit & 2) * 2;
  const uint scales = w.scales >> (unit & 1) * 8;
  const int low = dot16(q & 0x03030303, x.q0), high = dot16(q >> 2 & 0x03030303, x.q1);
  const vec2 d = unpackHalf2x16(w.d);
  return d.x * (float(int(scales & 15) * low) * x.scale0.x +
                float(int(scales >> 16 & 15) * high) * x.scale1.x) -
         d.y * (float(scales >> 4 & 15) * x.scale0.y + float(scales >> 20 & 15) * x.scale1.y);
}
