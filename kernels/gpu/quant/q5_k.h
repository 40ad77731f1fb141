// Q5_K: 256 weights in 8 groups of 32, w = d * scale * q - dmin * min.
//   f16 d, f16 dmin, 6-bit scales and minima in 12 bytes, high bits in 32 bytes (bit g of byte i is
//   weight i of group g), low four bits in 128 bytes as Q4_K has them
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/scales_k4.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint group = unit % 8;
  precise const vec2 scale = scale_and_min(load_16(block), group);
  const uint64_t q = block + 48 + group / 2 * 32;
  const uvec4 low0 = load_16(q) >> (group % 2 * 4), low1 = load_16(q + 16) >> (group % 2 * 4);
  const uvec4 high0 = load_16(block + 16) >> group, high1 = load_16(block + 32) >> group;
  const uvec4 first = (low0 & 0x0f0f0f0fu) | (high0 & 0x01010101u) << 4;
  const uvec4 second = (low1 & 0x0f0f0f0fu) | (high1 & 0x01010101u) << 4;
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(first, i)) - scale.y;
    w[i + 16] = scale.x * float(byte_of(second, i)) - scale.y;
  }
}
