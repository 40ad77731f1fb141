// IQ2_S: 256 weights in 16 groups of 16, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// two points of 8 weights.
//   f16 d, low 8 bits of point[32], 8 signs for each point in 32 bytes, high 2 bits of point[32] in 8 bytes,
//   4-bit scale[16]; the first is lowest
#define QUANT_PLANES {2, 32}, {66, 8}, {34, 32}, {74, 8}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[1024 / 8] = {
#include "kernels/tables/iq2_s_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8;
  const uint points = load_word(part(row, depth, block, 0) + group * 4);
  const uint high = load_u8(part(row, depth, block, 1) + group);
  const uint signs = load_word(part(row, depth, block, 2) + group * 4);
  const uint scales = load_u8(part(row, depth, block, 3) + group);
  const float d = load_f16(part(row, depth, block, 4));
  precise const float scale0 = d * (0.5f + float(scales & 15)) * 0.25f;
  precise const float scale1 = d * (0.5f + float(scales >> 4)) * 0.25f;
  [[unroll]] for (int j = 0; j < 4; ++j) {
    const uint point = point_at(byte_of(points, j) | ((high >> (j * 2)) & 3) << 8);
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[j * 8 + i] = with_sign((j < 2 ? scale0 : scale1) * iq2_level(point, i), signs, j * 8 + i);
  }
}
