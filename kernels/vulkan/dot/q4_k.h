// Q4_K: unit i of a block is 16 bytes, half of what holds groups 2 j (low) and 2 j + 1 (high), i = 2 j + h.
#include "kernels/vulkan/rows.h"

struct Weights {
  uvec4 head, q;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  return Weights(load_16(block), load_16(block + 16 + unit % 8 * 16));
}

uvec2 dot_groups(uint unit) {
  const uint group = unit / 8 * 16 + (unit & 6) * 2 + (unit & 1);
  return uvec2(group, group + 2);
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 scales = scales_of_unit(w.head, unit);
  const int low = dot16(w.q & 0x0f0f0f0f, x.q0), high = dot16((w.q >> 4) & 0x0f0f0f0f, x.q1);
  const vec2 d = unpackHalf2x16(w.head.x);
  return d.x * (float(int(scales.x) * low) * x.scale0.x + float(int(scales.y) * high) * x.scale1.x) -
         d.y * (float(scales.z) * x.scale0.y + float(scales.w) * x.scale1.y);
}
