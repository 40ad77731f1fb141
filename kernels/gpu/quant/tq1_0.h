// TQ1_0: 256 weights of -1, 0, 1 times one scale, w = d * (q - 1). A byte holds 5 (the last four bytes 4)
// values of three as the fraction byte / 256 in base three, the first digit highest.
//   32 bytes of weights 32 j + i (byte i, digit j), 16 of 160 + 16 j + i, 4 of 240 + 4 j + i, f16 d
#define QUANT_PLANES {0, 48}, {48, 4}, {52, 2}
#include "kernels/gpu/quant.h"

// Digit j of a byte, less 1.
float digit(uint fraction, uint j) {
  const uint power = j < 4 ? (0x1b090301u >> (j * 8)) & 255 : 81;  // 3^j
  return float(int((fraction * power & 255) * 3 >> 8) - 1);
}

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8;
  const uint64_t from = part(row, depth, block, 0);
  const float d = load_f16(part(row, depth, block, 2));
  if (group < 5) {
    const uvec4 first = load_16(from), second = load_16(from + 16);
    [[unroll]] for (int i = 0; i < 16; ++i) {
      w[i] = digit(byte_of(first, i), group) * d;
      w[i + 16] = digit(byte_of(second, i), group) * d;
    }
  } else {  // digits 0 and 1, 2 and 3, or 4 of 16 bytes; then those of the last four
    const uvec4 bytes = load_16(from + 32);
    const uint last = load_word(part(row, depth, block, 1));
    [[unroll]] for (int i = 0; i < 16; ++i) {
      w[i] = digit(byte_of(bytes, i), group * 2 - 10) * d;
      w[i + 16] =
          (group < 7 ? digit(byte_of(bytes, i), group * 2 - 9) : digit(byte_of(last, i % 4), i / 4)) * d;
    }
  }
}
