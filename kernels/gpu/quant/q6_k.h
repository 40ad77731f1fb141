// Q6_K: 256 weights in 16 groups of 16, w = d * scale * (q - 32). A unit is two groups.
//   low four bits in 128 bytes, high two in 64 bytes, int8 scale[16], f16 d. A half of 128 weights
//   has 64 low and 32 high bytes: weight 32 j + i takes its low bits from byte 32 (j % 2) + i, low
//   half for j < 2, and its high bits from bits 2 j of byte i
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, half_of = unit % 8 / 4, quarter = unit % 4;
  const uint64_t from = row + block * QUANT_BYTES;
  const uint64_t low = from + half_of * 64 + quarter % 2 * 32;
  const uint64_t high = from + 128 + half_of * 32;
  const int scales = int(load_u16(from + 192 + unit % 8 * 2));
  const float d = load_f16(from + 208);
  precise const float scale0 = d * float(bitfieldExtract(scales, 0, 8));
  precise const float scale1 = d * float(bitfieldExtract(scales, 8, 8));
  const uvec4 low0 = load_16(low) >> (quarter / 2 * 4), low1 = load_16(low + 16) >> (quarter / 2 * 4);
  const uvec4 high0 = load_16(high) >> (quarter * 2), high1 = load_16(high + 16) >> (quarter * 2);
  const uvec4 q0 = (low0 & 0x0f0f0f0fu) | (high0 & 0x03030303u) << 4;
  const uvec4 q1 = (low1 & 0x0f0f0f0fu) | (high1 & 0x03030303u) << 4;
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale0 * float(int(byte_of(q0, i)) - 32);
    w[i + 16] = scale1 * float(int(byte_of(q1, i)) - 32);
  }
}
