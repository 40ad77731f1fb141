// Q5_K in planes (quant.h), each of its 8 groups by itself, as Q4_K; the fifth bits of a group in a
// word, that of weight 4 k + b in bit k of byte b.
#define QUANT_PLANES {0, 128}, {128, 32}, {160, 16}
#define QUANT_REORDERED 176
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/k4_planes.h"

void quant_begin() {}

uint unit_high(uint64_t row, uint depth, uint unit) { return load_word(part(row, depth, 0, 1) + unit * 4); }
uvec4 block_head(uint64_t row, uint depth, uint block) { return load_16(part(row, depth, block, 2)); }

// The fifth bits of the first and of the last 16 weights, as they stand in their bytes.
uvec4 first_high(uint bits) { return uvec4(bits << 4, bits << 3, bits << 2, bits << 1) & 0x10101010; }
uvec4 last_high(uint bits) { return uvec4(bits, bits >> 1, bits >> 2, bits >> 3) & 0x10101010; }

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 head = block_head(row, depth, unit / 8), low = unit_low(row, unit);
  precise const vec2 scale = unpackHalf2x16(head.x) * vec2(plane_scales(head, unit % 8));
  const uint high = unit_high(row, depth, unit);
  const uvec4 q0 = (low & 0x0f0f0f0f) | first_high(high), q1 = (low >> 4 & 0x0f0f0f0f) | last_high(high);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(q0, i)) - scale.y;
    w[i + 16] = scale.x * float(byte_of(q1, i)) - scale.y;
  }
}

// A block of GGUF as words of the reordered one.
void reorder(uint64_t from, out uint words[QUANT_REORDERED / 4]) {
  reorder_quants(from + 48, words);
  const uvec4 high0 = load_16(from + 16), high1 = load_16(from + 32);
  [[unroll]] for (uint unit = 0; unit < 8; ++unit) {
    uint bits = 0;
    [[unroll]] for (uint k = 0; k < 4; ++k)
      bits |= (high0[k] >> unit & 0x01010101) << k | (high1[k] >> unit & 0x01010101) << 4 + k;
    words[32 + unit] = bits;
  }
  reorder_head(from, 40, words);
}
