// Q4_0: 32 weights share one scale, w = d * (q - 8).
//   f16 d, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
#define QUANT_PLANES {2, 16}, {0, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 q = load_16(part(row, depth, unit, 0));
  const float d = load_f16(part(row, depth, unit, 1));
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = float(int(byte_of(q, i) & 15) - 8) * d;
    w[i + 16] = float(int(byte_of(q, i) >> 4) - 8) * d;
  }
}
