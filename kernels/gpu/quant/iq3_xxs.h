// IQ3_XXS: 256 weights in 8 groups of 32, w = d * (0.5 + scale) / 2 * grid value, with a sign. A group is
// eight points of 4 weights.
//   f16 d, uint8 point[64], then for each group a uint32 of four times 7 signs and the scale in its top 4
//   bits
#define QUANT_PLANES {2, 64}, {66, 32}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[256 / 8] = {
#include "kernels/tables/iq3_xxs_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8;
  const uint64_t points = part(row, depth, block, 0) + group * 8;
  const uvec2 words = uvec2(load_word(points), load_word(points + 4));
  const uint more = load_word(part(row, depth, block, 1) + group * 4);
  precise const float scale = load_f16(part(row, depth, block, 2)) * (0.5f + float(more >> 28)) * 0.5f;
  [[unroll]] for (int j = 0; j < 8; ++j) {
    const uint point = point_at(byte_of(words[j / 4], j % 4)),
               signs = even_signs((more >> (j / 2 * 7)) & 127);
    [[unroll]] for (int i = 0; i < 4; ++i) {
      const uint code = bitfieldExtract(point, i * 3, 3);
      const float level = float(code * 8 + (code == 7 ? 6 : 4));  // 4, 12, .. 52, 62
      w[j * 4 + i] = with_sign(scale * level, signs, j % 2 * 4 + i);
    }
  }
}
