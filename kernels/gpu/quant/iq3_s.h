// IQ3_S: 256 weights in 8 groups of 32, w = d * (1 + 2 * scale) * grid value, with a sign. A group is eight
// points of 4 weights.
//   f16 d, low 8 bits of point[64], high bit of point[64] in 8 bytes, sign of each weight in 32 bytes,
//   4-bit scale[8]; the first is lowest
#define QUANT_PLANES {2, 64}, {66, 8}, {74, 32}, {106, 4}, {0, 2}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/iq_points.h"

const uvec4 kPoints[512 / 8] = {
#include "kernels/tables/iq3_s_grid.inc"
};
#include "kernels/gpu/quant/shared/iq_grid.h"

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint block = unit / 8, group = unit % 8;
  const uint64_t points = part(row, depth, block, 0) + group * 8;
  const uvec2 words = uvec2(load_word(points), load_word(points + 4));
  const uint high = load_u8(part(row, depth, block, 1) + group);
  const uint signs = load_word(part(row, depth, block, 2) + group * 4);
  const uint four_bits = (load_u8(part(row, depth, block, 3) + group / 2) >> (group % 2 * 4)) & 15;
  precise const float scale = load_f16(part(row, depth, block, 4)) * float(1 + 2 * four_bits);
  [[unroll]] for (int j = 0; j < 8; ++j) {
    const uint point = point_at(byte_of(words[j / 4], j % 4) | ((high >> j) & 1) << 8);
    [[unroll]] for (int i = 0; i < 4; ++i) {
      const float level = float(bitfieldExtract(point, i * 3, 3) * 2 + 1);
      w[j * 4 + i] = with_sign(scale * level, signs, j * 4 + i);
    }
  }
}
