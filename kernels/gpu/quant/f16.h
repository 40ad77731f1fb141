// F16: IEEE half precision.
#include "kernels/gpu/quant.h"

uint64_t quant_row_bytes(uint depth) { return uint64_t(depth) * 2; }

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out float w[kUnit]) {
  const uint64_t at = row + unit * 64;
  if ((row & 15) == 0 && unit * kUnit + kUnit <= depth) {
    [[unroll]] for (int i = 0; i < 4; ++i) {
      const uvec4 words = load_16_of_16(at + i * 16);
      [[unroll]] for (int j = 0; j < 4; ++j) {
        const vec2 pair = unpackHalf2x16(words[j]);
        w[i * 8 + j * 2] = pair.x;
        w[i * 8 + j * 2 + 1] = pair.y;
      }
    }
  } else {
    [[unroll]] for (int i = 0; i < 32; ++i) w[i] = unit * kUnit + i < depth ? load_f16(at + i * 2) : 0;
  }
}
