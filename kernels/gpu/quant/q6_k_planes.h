// Q6_K in planes (quant.h), each 32 weights by themselves: 16 bytes of low bits, the first 16
// weights in the low halves; 8 bytes of high bits, two bits each, of weights 4 k + b in bits 2 k of byte b of
// a word for 16 weights; two scales; and d once for all.
#define QUANT_PLANES {0, 128}, {128, 64}, {192, 16}, {208, 2}
#define QUANT_REORDERED 212
#include "kernels/gpu/quant.h"

void quant_begin() {}

uvec4 unit_low(uint64_t row, uint unit) { return load_16(row + unit * 16); }
uvec2 unit_high(uint64_t row, uint depth, uint unit) {
  return uvec2_address(part(row, depth, 0, 1)).at[unit];
}

// Two scales of 8 bits.
uint unit_scales(uint64_t row, uint depth, uint unit) { return load_u16(part(row, depth, 0, 2) + unit * 2); }

// The high bits of the 16 weights of a word, as they stand in the bytes of 16 weights.
uvec4 spread_high(uint bits) { return uvec4(bits << 4, bits << 2, bits, bits >> 2) & 0x30303030; }

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const int scales = int(unit_scales(row, depth, unit));
  const float d = load_f16(part(row, depth, unit / 8, 3));
  precise const float scale0 = d * float(bitfieldExtract(scales, 0, 8));
  precise const float scale1 = d * float(bitfieldExtract(scales, 8, 8));
  const uvec4 low = unit_low(row, unit);
  const uvec2 high = unit_high(row, depth, unit);
  const uvec4 q0 = (low & 0x0f0f0f0f) | spread_high(high.x),
              q1 = (low >> 4 & 0x0f0f0f0f) | spread_high(high.y);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale0 * float(int(byte_of(q0, i)) - 32);
    w[i + 16] = scale1 * float(int(byte_of(q1, i)) - 32);
  }
}

// A block of GGUF (quant/q6_k.h) as words of the reordered one.
void reorder(uint64_t from, out uint words[QUANT_REORDERED / 4]) {
  [[unroll]] for (uint unit = 0; unit < 8; ++unit) {
    const uint quarter = unit % 4, shift = quarter / 2 * 4;
    const uint64_t low = from + unit / 4 * 64 + quarter % 2 * 32, high = from + 128 + unit / 4 * 32;
    const uvec4 low0 = load_16_of_2(low) >> shift & 0x0f0f0f0f,
                low1 = load_16_of_2(low + 16) >> shift & 0x0f0f0f0f;
    const uvec4 high0 = load_16_of_2(high) >> quarter * 2 & 0x03030303,
                high1 = load_16_of_2(high + 16) >> quarter * 2 & 0x03030303;
    words[32 + unit * 2] = words[33 + unit * 2] = 0;
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      words[unit * 4 + k] = low0[k] | low1[k] << 4;
      words[32 + unit * 2] |= high0[k] << 2 * k;
      words[33 + unit * 2] |= high1[k] << 2 * k;
    }
  }
  [[unroll]] for (uint i = 0; i < 4; ++i) words[48 + i] = load_word_of_2(from + 192 + i * 4);
  words[52] = load_u16(from + 208);
}
