// Q4_K in planes (kernels/abi/quant_planes.def), each of its 8 groups by itself: 16 bytes of quants, the first 16 weights
// in their low halves. Then the heads of the blocks (scales_k4.h).
#define QUANT_BLOCK 256
#define QUANT_BYTES 144
#define QUANT_ALIGN 16
#define QUANT_PARTS kParts_q4_k
#define QUANT_REORDERED 144  // bytes of a block in the order of the planes
#define PLANES
#include "kernels/vulkan/quant.h"
#include "kernels/vulkan/scales_k4.h"

void quant_begin() {}

uvec4 unit_low(uint64_t row, uint depth, uint unit) { return load_16(row + unit * 16); }
uvec4 block_head(uint64_t row, uint depth, uint block) { return load_16(part(row, depth, block, 1)); }

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 head = block_head(row, depth, unit / 8), q = unit_low(row, depth, unit);
  precise const vec2 scale = unpackHalf2x16(head.x) * vec2(plane_scales(head, unit % 8));
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = scale.x * float(byte_of(q, i) & 15) - scale.y;
    w[i + 16] = scale.x * float(byte_of(q, i) >> 4) - scale.y;
  }
}

// A block of GGUF as words of the reordered one.
void reorder(uint64_t from, out uint words[QUANT_REORDERED / 4]) {
  [[unroll]] for (uint pair = 0; pair < 4; ++pair) {
    const uvec4 first = load_16(from + 16 + pair * 32), second = load_16(from + 32 + pair * 32);
    [[unroll]] for (uint k = 0; k < 4; ++k) {
      words[pair * 8 + k] = (first[k] & 0x0f0f0f0f) | (second[k] & 0x0f0f0f0f) << 4;
      words[pair * 8 + 4 + k] = (first[k] >> 4 & 0x0f0f0f0f) | (second[k] & 0xf0f0f0f0);
    }
  }
  const uvec4 head = plane_head(load_16(from));
  [[unroll]] for (uint k = 0; k < 4; ++k) words[32 + k] = head[k];
}
