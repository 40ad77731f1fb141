// Q5_1: 32 weights share a scale and a minimum, w = d * q + m.
//   f16 d, f16 m, uint32 high bits of q, low four bits of q[32]: byte i holds q[i] low and q[i + 16] high
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit * QUANT_BYTES;
  const vec2 d_and_m = unpackHalf2x16(load_word(block));
  const uint high = load_word(block + 4);
  const uvec4 q = load_16(block + 8);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = float((byte_of(q, i) & 15) | ((high >> i) & 1) << 4) * d_and_m.x + d_and_m.y;
    w[i + 16] = float(byte_of(q, i) >> 4 | ((high >> (i + 16)) & 1) << 4) * d_and_m.x + d_and_m.y;
  }
}
