// TQ1_0: units 0 to 5 of a block are digits 0 and 1, or 2 and 3, of 16 bytes; unit 6 is digit 4 of the first
// 32 bytes, unit 7 digit 4 of the next 16 and, as a group, digits 0 to 3 of the last 4.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 first, second;
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, i = unit % 8;
  const uint64_t bytes = part(row, kDepth, block, 0);
  const uint at = i < 6 ? i / 2 * 16 : (i - 6) * 32;
  const uvec4 first = load_16(bytes + at);
  const uvec4 second = i < 6    ? first
                       : i == 6 ? load_16(bytes + 16)
                                : uvec4(load_word(part(row, kDepth, block, 1)));
  return Weights(first, second, load_f16(part(row, kDepth, block, 2)));
}

#define DOT_GROUPS
uvec2 dot_groups(uint unit) {
  const uint block = unit / 8 * 16, i = unit % 8;
  if (i < 4) return block + (i & 1) * 4 + i / 2 + uvec2(0, 2);
  return block + (i < 6 ? 10 + (i & 1) * 2 : i == 6 ? 8 : 14) + uvec2(0, 1);
}

// The digits that power[j] = 3^digit takes from the bytes of word j.
uvec4 digits(uvec4 bytes, uvec4 power) {
  const uvec4 even = ((bytes & 0x00ff00ff) * power & 0x00ff00ff) * 3,
              odd = ((bytes >> 8 & 0x00ff00ff) * power & 0x00ff00ff) * 3;
  return (even >> 8 & 0x00030003) | (odd & 0x03000300);
}

float dot_unit(Weights w, uint unit, Values x) {
  const uint i = unit % 8, power = i < 6 ? (i & 1) * 8 + 1 : 81;  // 3^0, 3^2 or 3^4
  const uvec4 next = i < 6 ? uvec4(power * 3) : i == 6 ? uvec4(81) : uvec4(1, 3, 9, 27);
  const int low = dot16(digits(w.first, uvec4(power)), x.q0), high = dot16(digits(w.second, next), x.q1);
  return w.d * (float(low) * x.scale0.x + float(high) * x.scale1.x - (x.scale0.y + x.scale1.y));
}
