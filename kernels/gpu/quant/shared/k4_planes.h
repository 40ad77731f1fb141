// What Q4_K and Q5_K share in planes. A unit is a group: 16 bytes, the first 16 weights in their low halves.
#ifndef GRETA_GPU_K4_PLANES_H
#define GRETA_GPU_K4_PLANES_H
#include "kernels/gpu/quant/shared/scales_k4.h"

uvec4 unit_low(uint64_t row, uint unit) { return load_16(row + unit * 16); }

// The 128 bytes of quants at `from`, in GGUF order, as the first words of a reordered block.
void reorder_quants(uint64_t from, inout uint words[QUANT_REORDERED / 4]) {
  [[unroll]] for (uint pair = 0; pair < 4; ++pair) {
    const uvec4 first = load_16(from + pair * 32), second = load_16(from + 16 + pair * 32);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      words[pair * 8 + k] = (first[k] & 0x0f0f0f0f) | (second[k] & 0x0f0f0f0f) << 4;
      words[pair * 8 + 4 + k] = (first[k] >> 4 & 0x0f0f0f0f) | (second[k] & 0xf0f0f0f0);
    }
  }
}

// The head of a block (scales_k4.h) as it is in planes: d and dmin; two words with a byte for each group, its
// scale and above it the two lowest bits of its minimum; and a word with the other four bits of all minima.
uvec4 plane_head(uvec4 head) {
  uvec4 words = uvec4(head.x, 0, 0, 0);
  [[unroll]] for (uint pair = 0; pair < 4; ++pair) {
    const uvec4 of = scales_of_unit(head, pair * 2);
    [[unroll]] for (uint i = 0; i < 2; ++i) {
      const uint group = pair * 2 + i, scale = of[i], least = of[2 + i];
      words[1 + group / 4] |= (scale | (least & 3) << 6) << group % 4 * 8;
      words[3] |= least >> 2 << group * 4;
    }
  }
  return words;
}

// Scale and minimum of group `i` of such a head.
uvec2 plane_scales(uvec4 head, uint i) {
  const uint both = (i < 4 ? head.y : head.z) >> i % 4 * 8;
  return uvec2(both & 63, both >> 6 & 3 | (head.w >> i * 4 & 15) << 2);
}

// That of the GGUF block at `from`, as words from `at` on.
void reorder_head(uint64_t from, uint at, inout uint words[QUANT_REORDERED / 4]) {
  const uvec4 head = plane_head(load_16(from));
  [[unroll]] for (uint k = 0; k < 4; ++k) words[at + k] = head[k];
}
#endif
