// The frame of the decode kernels (matmul_rows): one token, weights streamed once, products in int8.
//
// A group normalises x, rounds it to int8 and keeps it in shared memory; its subgroups then make pairs of output
// rows: neighbours, the two of a rotated pair, or a row of the gate and one of the up. A subgroup's lanes take
// units of 32 weights in turn. Weights do not depend on the step before, so the first are loaded before x is.
//
// dot/<type>.h says how a type multiplies:
//   Weights                        a unit as it is loaded
//   dot_load(row, unit)            unit `unit` of the row at address `row`
//   dot_slot(group)                where the 16 values of group `group` of x lie: a unit multiplies with slots
//                                  16 (unit / 8) + unit % 8 and 8 more, so that lanes read side by side
//   dot_unit(weights, unit, x)     the sum over the unit
#ifndef GRETA_VULKAN_ROWS_H
#define GRETA_VULKAN_ROWS_H
#extension GL_EXT_integer_dot_product : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/quant.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
GRETA_ABI_BUFFER(float16, float16_t, 2)

layout(constant_id = 2) const uint kDepth = 256;
const uint kUnits = kDepth / 32;
const uint kSlots = (kDepth + 255) / 256 * 16;

// The part of x that a unit multiplies with: two groups of 16 values, x = q * scale.x; scale.y is the
// sum of the group.
struct Values {
  uvec4 q0, q1;
  vec2 scale0, scale1;
};

// Sum of 16 products of int8.
int dot16(uvec4 w, uvec4 x) {
  int sum = 0;
  [[unroll]] for (int i = 0; i < 4; ++i) sum += dotPacked4x8EXT(int(w[i]), int(x[i]));
  return sum;
}

#endif
