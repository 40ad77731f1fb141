// TQ2_0: 256 weights of -1, 0, 1 times one scale, w = d * (q - 1).
//   2-bit q[256] in 64 bytes, as in Q2_K: weight 32 j + i of a half in bits 2 j of its byte i; f16 d
#define QUANT_PLANES {0, 64}, {64, 2}
#include "kernels/gpu/quant.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t q = part(row, depth, unit / 8, 0) + unit % 8 / 4 * 32;
  const float d = load_f16(part(row, depth, unit / 8, 1));
  const uvec4 first = load_16(q) >> (unit % 4 * 2), second = load_16(q + 16) >> (unit % 4 * 2);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = float(int(byte_of(first, i) & 3) - 1) * d;
    w[i + 16] = float(int(byte_of(second, i) & 3) - 1) * d;
  }
}
