// IQ2_XXS: 256 weights in 8 groups of 32, w = d * (0.5 + scale) / 4 * grid value, with a sign. A group is
// four points of 8 weights.
//   f16 d, then for each group: uint8 point[4], uint32 of four times 7 signs and the scale in its top 4 bits
#define QUANT_PLANES {2, 64}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[256 / 8] = {
#include "kernels/tables/iq2_xxs_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t q = part(row, depth, unit / 8, 0) + unit % 8 * 8;
  const uint points = load_word(q), more = load_word(q + 4);
  precise const float scale = load_f16(part(row, depth, unit / 8, 1)) * (0.5f + float(more >> 28)) * 0.25f;
  [[unroll]] for (int j = 0; j < 4; ++j) {
    const uint point = point_at(byte_of(points, j)), signs = even_signs((more >> (7 * j)) & 127);
    [[unroll]] for (int i = 0; i < 8; ++i) w[j * 8 + i] = with_sign(scale * iq2_level(point, i), signs, i);
  }
}
