// convert_planes: a weight from GGUF order to planes (kernels/abi/quant_planes.def). One group is kPackRows rows;
// a thread takes whole blocks, and zeros what fills a plane up.
#include "kernels/abi/ops.h"

layout(push_constant, scalar) uniform Push { ConvertBlock p; };

const uint kPackRows = 16;  // of src/compute/op.h

// Part i of a block into its plane; of what fills the plane up, zeros.
void copy_part(uint64_t from, uint64_t row, uint block, uint i) {
  byte_address x = byte_address(from + QUANT_PARTS[i].x), y = byte_address(part(row, p.depth, block, i));
  for (uint b = 0; b < QUANT_PARTS[i].y; ++b) y.at[b] = x.at[b];
}

void fill_up(uint64_t row, uint blocks, uint i) {
  byte_address plane = byte_address(part(row, p.depth, 0, i));
  for (uint b = blocks * QUANT_PARTS[i].y; b < uint(plane_bytes(p.depth, i)); ++b) plane.at[b] = uint8_t(0);
}

void main() {
  const uint blocks = p.depth / QUANT_BLOCK;
  const uint first = gl_WorkGroupID.x * kPackRows;
  for (uint n = first; n < min(first + kPackRows, p.rows); ++n) {
    const uint64_t from = uint64_t(p.x) + uint64_t(n) * blocks * QUANT_BYTES;
    const uint64_t row = uint64_t(p.y) + n * quant_row_bytes(p.depth);
    for (uint block = gl_LocalInvocationIndex; block < blocks; block += gl_WorkGroupSize.x) {
      const uint64_t at = from + uint64_t(block) * QUANT_BYTES;
      [[unroll]] for (uint i = 0; i < kMaxParts; ++i) copy_part(at, row, block, i);
    }
    [[unroll]] for (uint i = 0; i < kMaxParts; ++i)
      if (gl_LocalInvocationIndex == i) fill_up(row, blocks, i);
  }
}
