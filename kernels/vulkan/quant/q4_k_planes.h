// Q4_K in planes (kernels/abi/quant_planes.def), each of its 8 groups by itself: 16 bytes of quants, the first 16 weights
// in their low halves; scale and minimum, a byte each; and d and dmin once for all groups.
#define QUANT_BLOCK 256
#define QUANT_BYTES 144
#define QUANT_ALIGN 16
#define QUANT_PARTS kParts_q4_k
#define QUANT_REORDERED 148  // bytes of a block in the order of the planes
#define PLANES
#include "kernels/vulkan/quant.h"
#include "kernels/vulkan/scales_k4.h"

void quant_begin() {}

// Scale and minimum of a unit as two bytes; d and dmin as two halves.
uint unit_scales(uint64_t row, uint depth, uint unit) { return load_u16(part(row, depth, unit / 8, 1) + unit % 8 * 2); }
uint unit_d(uint64_t row, uint depth, uint unit) { return load_word(part(row, depth, unit / 8, 2)); }

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint scales = unit_scales(row, depth, unit);
  precise const vec2 scale = unpackHalf2x16(unit_d(row, depth, unit)) * vec2(scales & 255, scales >> 8);
  const uvec4 q = load_16(part(row, depth, unit / 8, 0) + unit % 8 * 16);
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(q, i) & 15) - scale.y;
    w[i + 16] = scale.x * float(byte_of(q, i) >> 4) - scale.y;
  }
}

// A block of GGUF as words of the reordered one.
void reorder(uint64_t from, out uint words[QUANT_REORDERED / 4]) {
  const uvec4 head = load_16(from);
  [[unroll]] for (uint pair = 0; pair < 4; ++pair) {
    const uvec4 first = load_16(from + 16 + pair * 32), second = load_16(from + 32 + pair * 32);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      words[pair * 8 + i] = (first[i] & 0x0f0f0f0f) | (second[i] & 0x0f0f0f0f) << 4;
      words[pair * 8 + 4 + i] = (first[i] >> 4 & 0x0f0f0f0f) | (second[i] & 0xf0f0f0f0);
    }
    const uvec4 scales = scales_of_unit(head, pair * 2);
    words[32 + pair] = scales.x | scales.z << 8 | scales.y << 16 | scales.w << 24;
  }
  words[36] = head.x;
}
