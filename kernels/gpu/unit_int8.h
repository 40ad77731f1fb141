// What a dot/<type>.h header multiplies: a unit of 32 weights of one row, with the 32 values of x in its
// columns, in int8.
//
// x is a row in the activation format q8x16 (kernels/abi/q8.h): 16 values q of int8 share a scale, x = q *
// scale. dot/<type>.h includes this file and defines
//   dot_begin()                  fills the type's tables in shared memory; all threads of the group call it
//   Weights                      the bytes of a unit, as they are loaded
//   dot_load(row, unit)          loads unit `unit` of the row of weights at the address `row`
//   dot_unit(weights, unit, x)   returns the sum of weight * x over the unit
//   dot_groups(unit)             returns which two groups of 16 values of x the unit multiplies. It exists
//                                where DOT_GROUPS is defined; elsewhere the groups are 2 unit and 2 unit + 1
#ifndef GRETA_GPU_UNIT_INT8_H
#define GRETA_GPU_UNIT_INT8_H
#ifdef GL_core_profile
#extension GL_EXT_integer_dot_product : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "kernels/gpu/q8x16.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(vec4, vec4, 16)

#ifndef GL_core_profile
#pragma clang fp contract(fast)  // as GLSL does: a sum of products takes an instruction for each
#endif

// kDepth: columns of the weight, values of a row of x. kUnits: units of a row.
#ifdef GL_core_profile
layout(constant_id = 2) const uint kDepth = 256;
const uint kUnits = kDepth / 32;
#else
#define kDepth BLOCK_FIELD(depth)
#define kUnits (kDepth / 32)
#endif

// The 32 values of x that a unit multiplies, in two groups of 16.
struct Values {
  uvec4 q0, q1;         // int8 q[16] of each group
  vec2 scale0, scale1;  // of each group: its scale, and the sum of its 16 values of x
};

// Adds four of them to `sum`.
#ifdef GL_core_profile
#define add_dot4(sum, a, b) sum += dotPacked4x8EXT(a, b)
#else
#define add_dot4(sum, a, b) sum = dot4(a, b, sum)
#endif

// The sum of 16 products of int8.
int dot16(uvec4 w, uvec4 x) {
  int sum = 0;
  [[unroll]] for (int i = 0; i < 4; ++i) add_dot4(sum, int(w[i]), int(x[i]));
  return sum;
}

// Turns 16 bits into 16 bytes that are 0 or 1.
uvec4 spread_bits(uint bits) {
  return (uvec4(bits, bits >> 4, bits >> 8, bits >> 12) & 15) * 0x00204081 & 0x01010101;
}

#endif
