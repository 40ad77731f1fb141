// Q4_K: 256 weights in 8 groups of 32, w = d * scale * q - dmin * min. A unit is a group.
//   f16 d, f16 dmin, 6-bit scales and minima in 12 bytes, 4-bit q[256] in 128 bytes: 32 bytes hold
//   one group in their low and the next in their high halves
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/scales_k4.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint group = unit % 8;
  precise const vec2 scale = scale_and_min(load_16(block), group);
  const uint64_t q = block + 16 + group / 2 * 32;
  const uvec4 first = load_16(q) >> (group % 2 * 4), second = load_16(q + 16) >> (group % 2 * 4);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(first, i) & 15) - scale.y;
    w[i + 16] = scale.x * float(byte_of(second, i) & 15) - scale.y;
  }
}
