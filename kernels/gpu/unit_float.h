// What a dot/<type>.h header of a float type multiplies: a unit of 8 weights of one row, with 8 values of x,
// in float32.
//
// dot/<type>.h includes this file and defines
//   Weights                  the bytes of a unit, as they are loaded
//   dot_load(row, unit)      loads unit `unit` of the row of weights at the address `row`, a multiple of 16
//   dot_unit(weights, x)     returns the sum of weight * x over the unit
//   DOT_LARGE                where several units at once would take too many registers
#ifndef GRETA_GPU_UNIT_FLOAT_H
#define GRETA_GPU_UNIT_FLOAT_H

#ifndef GL_core_profile
#pragma clang fp contract(fast)  // as GLSL does: a sum of products takes an instruction for each
#endif

// kDepth: columns of the weight, values of a row of x. kUnits: units of a row.
#ifdef GL_core_profile
layout(constant_id = 2) const uint kDepth = 256;
const uint kUnits = kDepth / 8;
#else
#define kDepth BLOCK_FIELD(depth)
#define kUnits (kDepth / 8)
#endif

// The 8 values of x that a unit multiplies.
struct Values {
  vec4 x0, x1;
};
#endif
