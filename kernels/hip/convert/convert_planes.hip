// convert_planes: y = the weight x [rows][depth], from GGUF order to planes (QUANT_PLANES in
// kernels/gpu/quant.h)
//   grid    (rows / 16): kPackRows of src/compute/op.h
//   group   GROUP threads; each takes whole blocks, and copies them 1 or 2 bytes at a time: a divisor of a
//           block's bytes
//   shared  none
//   moves   the weight once in each order
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"

constexpr uint kRows = 16;

#ifdef QUANT_REORDERED
DEVICE void copy_block(uint64_t from, uint64_t row, uint depth, uint block) {
  uint words[QUANT_REORDERED / 4];
  reorder(from, words);
  for (uint i = 0; i < kMaxParts; ++i) {
    const auto to = (GLOBAL uint16_t*)part(row, depth, block, i);
    for (uint j = 0; j < QUANT_PARTS[i].y / 2; ++j)
      to[j] = uint16_t(words[QUANT_PARTS[i].x / 4 + j / 2] >> j % 2 * 16);
  }
}
#else
#if QUANT_BYTES % 2 == 0
typedef uint16_t Copied;
#else
typedef byte Copied;
#endif

DEVICE void copy_block(uint64_t from, uint64_t row, uint depth, uint block) {
  for (uint i = 0; i < kMaxParts; ++i) {
    const auto x = (const GLOBAL Copied*)(from + QUANT_PARTS[i].x);
    const auto y = (GLOBAL Copied*)part(row, depth, block, i);
    for (uint j = 0; j < QUANT_PARTS[i].y / sizeof(Copied); ++j) y[j] = x[j];
  }
}
#endif

// Fills plane i of a row with zeros from its end to a multiple of 16 bytes.
DEVICE void fill_up(uint64_t row, uint depth, uint i) {
  const auto plane = (GLOBAL byte*)part(row, depth, 0, i);
  for (uint b = depth / QUANT_BLOCK * QUANT_PARTS[i].y; b < uint(plane_bytes(depth, i)); ++b) plane[b] = 0;
}

KERNEL(GROUP) void KERNEL_NAME(ConvertBlock p) {
  const uint blocks = p.depth / QUANT_BLOCK, first = group_x() * kRows;
  const uint rows = p.rows - first < kRows ? p.rows - first : kRows;
  for (uint j = thread_x(); j < rows * blocks; j += GROUP) {
    const uint n = first + j / blocks, block = j % blocks;
    const uint64_t from = uint64_t(p.x) + (uint64_t(n) * blocks + block) * QUANT_BYTES;
    const uint64_t row = uint64_t(p.y) + n * quant_row_bytes(p.depth);
    copy_block(from, row, p.depth, block);
    if (block == 0)
      for (uint i = 0; i < kMaxParts; ++i) fill_up(row, p.depth, i);
  }
}
