// Q3_K: 256 weights in 16 groups of 16, w = d * (scale - 32) * (q - 4).
//   high bits of q in 32 bytes, low two bits in 64 bytes, 6-bit scale[16] in 12 bytes, f16 d
#define QUANT_PLANES {32, 64}, {0, 32}, {96, 12}, {108, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8 * 2;
  const uint64_t scales = part(row, depth, block, 2);
  // 6 bits of two neighbours: low four bits from byte group % 8 on, high two from byte 8 + group % 4 on.
  const uint low = (load_u16(scales + group % 8) >> (group / 8 * 4)) & 0x0f0f;
  const uint high = (load_u16(scales + 8 + group % 4) >> (group / 4 * 2)) & 0x0303;
  const uint both = low | high << 4;
  const float d = load_f16(part(row, depth, block, 3));
  precise const float scale0 = d * float(int(both & 255) - 32);
  precise const float scale1 = d * float(int(both >> 8) - 32);
  const uint64_t q = part(row, depth, block, 0) + unit % 8 / 4 * 32, bits = part(row, depth, block, 1);
  const uvec4 q0 = load_16(q) >> (unit % 4 * 2), q1 = load_16(q + 16) >> (unit % 4 * 2);
  const uvec4 bits0 = load_16(bits) >> (unit % 8), bits1 = load_16(bits + 16) >> (unit % 8);
  const uvec4 first = (q0 & 0x03030303u) | (bits0 & 0x01010101u) << 2;
  const uvec4 second = (q1 & 0x03030303u) | (bits1 & 0x01010101u) << 2;
#pragma unroll  // HIP knows no [[unroll]], and would leave w in a loop of its own
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale0 * float(int(byte_of(first, i)) - 4);
    w[i + 16] = scale1 * float(int(byte_of(second, i)) - 4);
  }
}
