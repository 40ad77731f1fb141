// IQ4_NL: 32 weights share one scale, w = d * value[q]: 16 values that lie closer around zero.
//   f16 d, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
#define QUANT_PLANES {2, 16}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq4_values.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 q = load_16(part(row, depth, unit, 0));
  const float d = load_f16(part(row, depth, unit, 1));
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = iq4_values[byte_of(q, i) & 15] * d;
    w[i + 16] = iq4_values[byte_of(q, i) >> 4] * d;
  }
}
