// Q5_K: as Q4_K; bit 2 j (low) and 2 j + 1 (high) of 32 bytes are the fifth bits.
#include "kernels/vulkan/rows.h"

struct Weights {
  uvec4 head, q, high;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  return Weights(load_16(block), load_16(block + 48 + unit % 8 * 16), load_16(block + 16 + unit % 2 * 16));
}

#define DOT_GROUPS
uvec2 dot_groups(uint unit) {
  const uint group = unit / 8 * 16 + (unit & 6) * 2 + (unit & 1);
  return uvec2(group, group + 2);
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 scales = scales_of_unit(w.head, unit);
  const uvec4 bits = w.high >> (unit % 8 & 6u);
  const int low = dot16((w.q & 0x0f0f0f0f) | (bits & 0x01010101) << 4, x.q0);
  const int high = dot16(((w.q >> 4) & 0x0f0f0f0f) | (bits & 0x02020202) << 3, x.q1);
  const vec2 d = unpackHalf2x16(w.head.x);
  return d.x * (float(int(scales.x) * low) * x.scale0.x + float(int(scales.y) * high) * x.scale1.x) -
         d.y * (float(scales.z) * x.scale0.y + float(scales.w) * x.scale1.y);
}
