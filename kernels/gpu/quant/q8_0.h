// Q8_0: 32 weights share one scale, w = d * q.
//   f16 d, int8 q[32]
#define QUANT_PLANES {2, 32}, {0, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t q = part(row, depth, unit, 0);
  const float d = load_f16(part(row, depth, unit, 1));
  const uvec4 first = load_16(q), second = load_16(q + 16);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = float(signed_byte(first, i)) * d;
    w[i + 16] = float(signed_byte(second, i)) * d;
  }
}
