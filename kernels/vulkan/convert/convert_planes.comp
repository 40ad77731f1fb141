// convert_planes: y = the weight x [rows][depth], from GGUF order to planes (QUANT_PLANES in
// kernels/gpu/quant.h)
//   grid    (rows / 16): kPackRows of src/compute/op.h
//   group   GROUP threads; each takes whole blocks, and copies them 1 or 2 bytes at a time: a divisor of a
//           block's bytes
//   shared  none
//   moves   the weight once in each order
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/abi/ops.h"

layout(push_constant, scalar) uniform Push { ConvertBlock p; };

const uint kRows = 16;

#ifdef QUANT_REORDERED
void copy_block(uint64_t from, uint64_t row, uint block) {
  uint words[QUANT_REORDERED / 4];
  reorder(from, words);
  [[unroll]] for (uint i = 0; i < kMaxParts; ++i) {
    uint16_address to = uint16_address(part(row, p.depth, block, i));
    [[unroll]] for (uint j = 0; j < QUANT_PARTS[i].y / 2; ++j)
      to.at[j] = uint16_t(words[QUANT_PARTS[i].x / 4 + j / 2] >> j % 2 * 16);
  }
}
#else
// Copies part i of a block to its plane.
void copy_part(uint64_t from, uint64_t row, uint block, uint i) {
  const uint64_t to = part(row, p.depth, block, i);
#if QUANT_BYTES % 2 == 0
  uint16_address x = uint16_address(from + QUANT_PARTS[i].x), y = uint16_address(to);
  for (uint j = 0; j < QUANT_PARTS[i].y / 2; ++j) y.at[j] = x.at[j];
#else
  byte_address x = byte_address(from + QUANT_PARTS[i].x), y = byte_address(to);
  for (uint j = 0; j < QUANT_PARTS[i].y; ++j) y.at[j] = x.at[j];
#endif
}

void copy_block(uint64_t from, uint64_t row, uint block) {
  [[unroll]] for (uint i = 0; i < kMaxParts; ++i) copy_part(from, row, block, i);
}
#endif

// Fills plane i of a row with zeros from its end to a multiple of 16 bytes.
void fill_up(uint64_t row, uint blocks, uint i) {
  byte_address plane = byte_address(part(row, p.depth, 0, i));
  for (uint b = blocks * QUANT_PARTS[i].y; b < uint(plane_bytes(p.depth, i)); ++b) plane.at[b] = uint8_t(0);
}

void main() {
  const uint blocks = p.depth / QUANT_BLOCK, first = gl_WorkGroupID.x * kRows;
  const uint rows = min(p.rows - first, kRows);
  for (uint j = gl_LocalInvocationIndex; j < rows * blocks; j += gl_WorkGroupSize.x) {
    const uint n = first + j / blocks, block = j % blocks;
    const uint64_t from = uint64_t(p.x) + (uint64_t(n) * blocks + block) * QUANT_BYTES;
    const uint64_t row = uint64_t(p.y) + n * quant_row_bytes(p.depth);
    copy_block(from, row, block);
    if (block == 0) {
      [[unroll]] for (uint i = 0; i < kMaxParts; ++i) fill_up(row, blocks, i);
    }
  }
}
