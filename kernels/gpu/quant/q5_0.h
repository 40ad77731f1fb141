// Q5_0: 32 weights share one scale, w = d * (q - 16).
//   f16 d, uint32 high bits of q, low four bits of q[32]: byte i holds q[i] low and q[i + 16] high
#define QUANT_PLANES {6, 16}, {2, 4}, {0, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 q = load_16(part(row, depth, unit, 0));
  const uint high = load_word(part(row, depth, unit, 1));
  const float d = load_f16(part(row, depth, unit, 2));
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = float(int((byte_of(q, i) & 15) | ((high >> i) & 1) << 4) - 16) * d;
    w[i + 16] = float(int(byte_of(q, i) >> 4 | ((high >> (i + 16)) & 1) << 4) - 16) * d;
  }
}
