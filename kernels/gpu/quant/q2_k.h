// Q2_K: 256 weights in 16 groups of 16, w = d * scale * q - dmin * min.
//   scales[16] (scale low, min high), 2-bit q[256] in 64 bytes, f16 d, f16 dmin
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint scales = load_u16(block + unit % 8 * 2);  // of two groups
  const vec2 d = unpackHalf2x16(load_word(block + 80));
  precise const vec2 scale = d.x * vec2(scales & 15, (scales >> 8) & 15);
  precise const vec2 low = d.y * vec2((scales >> 4) & 15, scales >> 12);
  // A half of 128 weights has 32 bytes; its units differ by the shift.
  const uint64_t q = block + 16 + unit % 8 / 4 * 32;
  const uvec4 first = load_16(q) >> (unit % 4 * 2), second = load_16(q + 16) >> (unit % 4 * 2);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(first, i) & 3) - low.x;
    w[i + 16] = scale.y * float(byte_of(second, i) & 3) - low.y;
  }
}
