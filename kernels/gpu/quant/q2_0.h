// Q2_0: 64 weights share one scale, w = d * (q - 1).
//   f16 d, 2-bit q[64]: byte i holds q[4 i] .. q[4 i + 3], the first lowest
#define QUANT_PLANES {2, 16}, {0, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t q = part(row, depth, unit / 2, 0) + unit % 2 * 8;
  const uvec2 words = uvec2(load_word(q), load_word(q + 4));
  const float d = load_f16(part(row, depth, unit / 2, 1));
  [[unroll]] for (int i = 0; i < 32; ++i) w[i] = float(int((words[i / 16] >> (i % 16 * 2)) & 3) - 1) * d;
}
