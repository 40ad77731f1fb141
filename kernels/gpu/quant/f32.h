// F32: the value itself.
#include "kernels/gpu/quant.h"

uint64_t quant_row_bytes(uint depth) { return uint64_t(depth) * 4; }

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out float w[kUnit]) {
  const uint64_t at = row + uint64_t(unit) * 128;
  if ((row & 15) == 0 && unit * kUnit + kUnit <= depth) {
    [[unroll]] for (int i = 0; i < 8; ++i) {
      const uvec4 words = load_16_of_16(at + i * 16);
      [[unroll]] for (int j = 0; j < 4; ++j) w[i * 4 + j] = uintBitsToFloat(words[j]);
    }
  } else {
    [[unroll]] for (int i = 0; i < 32; ++i)
      w[i] = uintBitsToFloat(unit * kUnit + i < depth ? load_word_of_4(at + i * 4) : 0);
  }
}
