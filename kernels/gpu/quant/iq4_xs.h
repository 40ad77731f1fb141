// IQ4_XS: 256 weights in 8 groups of 32, w = d * (scale - 32) * value[q];
// the values are those of kernels/tables/iq4_values.inc.
//   f16 d, uint16 high two bits of 8 scales, low four bits of 8 scales in 4 bytes, 4-bit q[256]: 16 bytes
//   for each group, byte i with q[i] low and q[i + 16] high
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq4_values.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint group = unit % 8;
  const uint head = load_word(block);  // d, then the high bits
  const uint low = (load_u8(block + 4 + group / 2) >> (group % 2 * 4)) & 15;
  const uint high = (head >> (16 + group * 2)) & 3;
  precise const float scale = unpackHalf2x16(head).x * float(int(low | high << 4) - 32);
  const uvec4 q = load_16(block + 8 + group * 16);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale * iq4_values[byte_of(q, i) & 15];
    w[i + 16] = scale * iq4_values[byte_of(q, i) >> 4];
  }
}
