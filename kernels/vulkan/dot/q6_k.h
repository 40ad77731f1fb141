// Q6_K: unit i of a block is 16 bytes of low bits, i = 4 half + 2 c + h; weights 128 half + 32 c + 16 h .. + 15
// are in their low halves, those 64 further in their high halves.
#include "kernels/vulkan/rows.h"

struct Weights {
  uvec4 low, high;
  uint scales;  // two of 8 bits
  float d;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  const uint block = unit / 8, i = unit % 8;
  const uint64_t scales = part(row, kDepth, block, 2) + i / 4 * 8 + i % 4;
  return Weights(load_16(part(row, kDepth, block, 0) + i * 16), load_16(part(row, kDepth, block, 1) + i / 4 * 32 + i % 2 * 16),
                 load_u8(scales) | load_u8(scales + 4) << 8, load_f16(part(row, kDepth, block, 3)));
}

#define DOT_GROUPS
uvec2 dot_groups(uint unit) {
  const uint group = unit / 8 * 16 + (unit & 4) * 2 + (unit & 3);
  return uvec2(group, group + 4);
}

float dot_unit(Weights w, uint unit, Values x) {
  const uvec4 bits = w.high >> (unit & 2);
  const int low = dot16((w.low & 0x0f0f0f0f) | (bits & 0x03030303) << 4, x.q0);
  const int high = dot16(((w.low >> 4) & 0x0f0f0f0f) | (bits & 0x30303030), x.q1);
  const float scale0 = float(bitfieldExtract(int(w.scales), 0, 8)), scale1 = float(bitfieldExtract(int(w.scales), 8, 8));
  return w.d * (scale0 * (float(low) * x.scale0.x - 32 * x.scale0.y) + scale1 * (float(high) * x.scale1.x - 32 * x.scale1.y));
}
