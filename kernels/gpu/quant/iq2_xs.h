// IQ2_XS: 256 weights in 16 groups of 16, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// two points of 8 weights.
//   f16 d, uint16[32] of 9 bits of point and 7 signs, 4-bit scale[16], the first low
#define QUANT_PLANES {2, 64}, {66, 8}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[512 / 8] = {
#include "kernels/tables/iq2_xs_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8;
  const uint64_t q = part(row, depth, block, 0) + unit % 8 * 8;
  const uint scales = load_u8(part(row, depth, block, 1) + unit % 8);
  const float d = load_f16(part(row, depth, block, 2));
  precise const float scale0 = d * (0.5f + float(scales & 15)) * 0.25f;
  precise const float scale1 = d * (0.5f + float(scales >> 4)) * 0.25f;
  [[unroll]] for (int j = 0; j < 4; ++j) {
    const uint bits = load_u16(q + j * 2), point = point_at(bits & 511), signs = even_signs(bits >> 9);
    [[unroll]] for (int i = 0; i < 8; ++i)
      w[j * 8 + i] = with_sign((j < 2 ? scale0 : scale1) * iq2_level(point, i), signs, i);
  }
}
