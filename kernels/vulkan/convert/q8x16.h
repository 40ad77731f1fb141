// The form q8x16 of activations (kernels/abi/q8.h).
#ifndef GRETA_VULKAN_Q8X16_H
#define GRETA_VULKAN_Q8X16_H
#extension GL_KHR_shader_subgroup_shuffle : require
#include "kernels/vulkan/quant.h"
#include "kernels/abi/q8.h"

GRETA_ABI_BUFFER(vec2, vec2, 8)

// A unit in the last place of the scale is nothing here, and an exact division long.
float q8x16_scale(float most) {
  const float least = 1.2e-38;  // smaller ones are denormal, and drivers may take them for 0
  return most < 127 * least ? 0 : most / 127;
}

// Rounds values 16 block .. of a row; `values` have the gain in them, `squares` is the sum of theirs without it.
void store_q8x16(uint64_t row, uint depth, uint block, float values[16], float squares) {
  float most = 0;
  [[unroll]] for (uint i = 0; i < 16; ++i) most = max(most, abs(values[i]));
  const float scale = q8x16_scale(most), inverse = scale > 0 ? 1 / scale : 0;
  uvec4 words = uvec4(0);
  int sum = 0;
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    const int q = int(roundEven(values[i] * inverse));
    sum += q;
    words[i / 4] |= uint(q & 255) << i % 4 * 8;
  }
  uvec4_address(row).at[block] = words;
  vec2_address(row + q8x16_scales_at(depth)).at[block] = vec2(scale, scale * float(sum));
  float_address(row + q8x16_squares_at(depth)).at[block] = squares;
}

// The same by four lanes side by side, each with four values: `quarter` counts fours of the row, and is a multiple of
// four in the first of them. `squares` are the sums of this lane's values without the gain.
void store_q8x16(uint64_t row, uint depth, uint quarter, vec4 values, float squares) {
  const vec4 sizes = abs(values);
  float most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  most = max(most, subgroupShuffleXor(most, 1));
  most = max(most, subgroupShuffleXor(most, 2));
  const float scale = q8x16_scale(most);
  const ivec4 q = ivec4(roundEven(values * (scale > 0 ? 1 / scale : 0)));
  int sum = q.x + q.y + q.z + q.w;
  sum += subgroupShuffleXor(sum, 1);
  sum += subgroupShuffleXor(sum, 2);
  squares += subgroupShuffleXor(squares, 1);
  squares += subgroupShuffleXor(squares, 2);
  uint_address(row).at[quarter] = uint(q.x & 255) | uint(q.y & 255) << 8 | uint(q.z & 255) << 16 | uint(q.w & 255) << 24;
  if (quarter % 4 != 0) return;
  vec2_address(row + q8x16_scales_at(depth)).at[quarter / 4] = vec2(scale, scale * float(sum));
  float_address(row + q8x16_squares_at(depth)).at[quarter / 4] = squares;
}
#endif
