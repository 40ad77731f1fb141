// IQ1_M: 256 weights in 16 groups of 16, w = d * (2 * scale + 1) * (grid value + delta), delta 1/8 or -1/8
// for each point of 8 weights; the grid of IQ1_S.
//   low 8 bits of point[32], 4 bits for each point (3 high bits of it, set for the negative delta), then
//   uint16[4], each with four 3-bit scales and, on top, 4 bits of the f16 d, the lowest first
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[2048 / 8] = {
#include "kernels/tables/iq1_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 8 * QUANT_BYTES;
  const uint group = unit % 8;
  const uint points = load_word(block + group * 4), more = load_u16(block + 32 + group * 2);
  // Four words of 16 bits: four scales of 3 bits each, and 4 bits of d on top.
  const uint words0 = load_word(block + 48), words1 = load_word(block + 52);
  const uint bits_of_d = ((words0 >> 12) & 0xf) | ((words0 >> 24) & 0xf0) | ((words1 >> 4) & 0xf00) |
                         ((words1 >> 16) & 0xf000);
  const float d = unpackHalf2x16(bits_of_d).x;
  const uint scales = (group < 4 ? words0 : words1) >> (group / 2 % 2 * 16 + group % 2 * 6);
  [[unroll]] for (int j = 0; j < 4; ++j) {
    precise const float scale = d * float(2 * ((scales >> (j / 2 * 3)) & 7) + 1);
    const uint high = more >> (j * 4);
    const float delta = (high & 8) != 0 ? -0.125f : 0.125f;
    const uint point = point_at(byte_of(points, j) | (high & 7) << 8);
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[j * 8 + i] = scale * (float(int(bitfieldExtract(point, i * 2, 2)) - 1) + delta);
  }
}
