// How a row is stored in the activation format q8x16 (kernels/abi/q8.h).
#ifndef GRETA_GPU_Q8X16_H
#define GRETA_GPU_Q8X16_H
#ifdef GL_core_profile
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "kernels/gpu/math.h"
#include "kernels/gpu/quant.h"
#include "kernels/abi/q8.h"

GRETA_ABI_BUFFER(vec2, vec2, 8)

// The scale of 16 values with magnitudes up to `maximum`. Its last bit does not matter here, and an exact
// division takes long.
float q8x16_scale(float maximum) {
  const float smallest = 1.2e-38f;  // smaller scales are denormal, and drivers may take them for 0
  return maximum < 127 * smallest ? 0 : maximum / 127;
}

// The stored scales of 16 values whose rounded values have this sum. The maximum may have lost a NaN and the
// integers have lost infinities, but the sum of floats has both. Then the scale is NaN, and so is each
// product with the row.
vec2 q8x16_scales(float scale, float sum) {
  scale = if_finite(sum, scale);
  return vec2(scale, scale * sum);
}

// Rounds and stores values 16 group .. 16 group + 15 of a row. `values` have the gain in them; `squares` is
// the sum of their squares without it.
void store_q8x16(uint64_t row, uint depth, uint group, float values[16], float squares) {
  float maximum = 0;
  [[unroll]] for (uint i = 0; i < 16; ++i) maximum = max(maximum, abs(values[i]));
  const float scale = q8x16_scale(maximum), inverse = scale > 0 ? 1 / scale : 0;
  uvec4 words = uvec4(0);
  float sum = 0;
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    const float q = roundEven(values[i] * inverse);
    sum += q;
    words[i / 4] |= uint(int(q) & 255) << i % 4 * 8;
  }
  uvec4_address(row).at[group] = words;
  vec2_address(row + q8x16_scales_at(depth)).at[group] = q8x16_scales(scale, sum);
  float_address(row + q8x16_squares_at(depth)).at[group] = squares;
}

// The same by four neighbouring lanes, each with four values. `quarter` is the index of this lane's four
// values in the row, in fours; it is a multiple of four in the first lane. `squares` is the sum of the
// squares of this lane's values without the gain.
void store_q8x16(uint64_t row, uint depth, uint quarter, vec4 values, float squares) {
  const vec4 sizes = abs(values);
  float maximum = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  maximum = max(maximum, subgroupShuffleXor(maximum, 1));
  maximum = max(maximum, subgroupShuffleXor(maximum, 2));
  const float scale = q8x16_scale(maximum);
  const vec4 rounded = roundEven(values * (scale > 0 ? 1 / scale : 0));
  const ivec4 q = ivec4(rounded);
  float sum = (rounded.x + rounded.y) + (rounded.z + rounded.w);
  sum += subgroupShuffleXor(sum, 1);
  sum += subgroupShuffleXor(sum, 2);
  squares += subgroupShuffleXor(squares, 1);
  squares += subgroupShuffleXor(squares, 2);
  uint_address(row).at[quarter] =
      uint(q.x & 255) | uint(q.y & 255) << 8 | uint(q.z & 255) << 16 | uint(q.w & 255) << 24;
  if (quarter % 4 != 0) return;
  vec2_address(row + q8x16_scales_at(depth)).at[quarter / 4] = q8x16_scales(scale, sum);
  float_address(row + q8x16_squares_at(depth)).at[quarter / 4] = squares;
}
#endif
