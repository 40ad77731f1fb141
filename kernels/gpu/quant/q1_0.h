// Q1_0: 128 weights share one scale, w = d or -d.
//   f16 d, bits of 128 weights: set for d
#define QUANT_PLANES {2, 16}, {0, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint bits = load_word(part(row, depth, unit / 4, 0) + unit % 4 * 4);
  const float d = load_f16(part(row, depth, unit / 4, 1));
  [[unroll]] for (int i = 0; i < 32; ++i) w[i] = with_sign(d, ~bits, i);
}
