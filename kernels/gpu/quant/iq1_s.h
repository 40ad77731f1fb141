// IQ1_S: 256 weights in 8 groups of 32, w = d * (2 * scale + 1) * (grid value + delta), delta 1/8 or -1/8.
// A group is four points of 8 weights.
//   f16 d, low 8 bits of point[32], then for each group a uint16: high 3 bits of its points, 3 bits of scale,
//   set for the negative delta
#define QUANT_PLANES {2, 32}, {34, 16}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[2048 / 8] = {
#include "kernels/tables/iq1_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8;
  const uint points = load_word(part(row, depth, block, 0) + group * 4);
  const uint more = load_u16(part(row, depth, block, 1) + group * 2);
  precise const float scale = load_f16(part(row, depth, block, 2)) * float(2 * ((more >> 12) & 7) + 1);
  const float delta = (more & 0x8000) != 0 ? -0.125f : 0.125f;
  [[unroll]] for (int j = 0; j < 4; ++j) {
    const uint point = point_at(byte_of(points, j) | ((more >> (j * 3)) & 7) << 8);
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[j * 8 + i] = scale * (float(int(bitfieldExtract(point, i * 2, 2)) - 1) + delta);
  }
}
