// Q4_K in planes (quant.h), each of its 8 groups by itself: 16 bytes of quants, the first 16 weights
// in their low halves. Then the heads of the blocks (k4_planes.h).
#define QUANT_PLANES {0, 128}, {128, 16}
#define QUANT_REORDERED 144  // bytes of a block in the order of the planes
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/k4_planes.h"

void quant_begin() {}

uvec4 block_head(uint64_t row, uint depth, uint block) { return load_16(part(row, depth, block, 1)); }

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 head = block_head(row, depth, unit / 8), q = unit_low(row, unit);
  precise const vec2 scale = unpackHalf2x16(head.x) * vec2(plane_scales(head, unit % 8));
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(q, i) & 15) - scale.y;
    w[i + 16] = scale.x * float(byte_of(q, i) >> 4) - scale.y;
  }
}

// A block of GGUF as words of the reordered one.
void reorder(uint64_t from, out uint words[QUANT_REORDERED / 4]) {
  reorder_quants(from + 16, words);
  reorder_head(from, 32, words);
}
