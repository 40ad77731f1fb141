// The frame of the decode kernels (matmul_rows): one token, weights streamed once, products in int8.
//
// A subgroup makes a few rows of weights, its lanes take units of 32 weights in turn; a result is one row or two
// (kernels/abi/ops.h, `pairing`). x lies in memory as int8, rounded by the launch that made it, and is small enough to
// stay in the caches.
//
// dot/<type>.h says how a type multiplies:
//   dot_begin()                    as quant_begin(): fills the type's tables in shared memory
//   Weights                        a unit as it is loaded
//   dot_load(row, unit)            unit `unit` of the row at address `row`
//   dot_groups(unit)               with DOT_GROUPS: which two groups of 16 values of x a unit multiplies with; else
//                                  they are 2 unit and 2 unit + 1
//   dot_unit(weights, unit, x)     the sum over the unit
#ifndef GRETA_VULKAN_ROWS_H
#define GRETA_VULKAN_ROWS_H
#extension GL_EXT_integer_dot_product : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/convert/q8x16.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(vec4, vec4, 16)

layout(constant_id = 2) const uint kDepth = 256;
const uint kUnits = kDepth / 32;

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

// 16 bits as the lowest bits of 16 bytes.
uvec4 spread_bits(uint bits) { return (uvec4(bits, bits >> 4, bits >> 8, bits >> 12) & 15) * 0x00204081 & 0x01010101; }

#endif
