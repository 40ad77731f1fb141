// The frame of the decode kernels of weights that are floats (matmul_rows_float): x and sums in float32.
//
// Lanes take units of 8 columns in turn. dot/<type>.h has
//   Weights                  a unit as it is loaded
//   dot_load(row, unit)      unit `unit` of the row at address `row`, a multiple of 16
//   dot_unit(weights, x)     the sum over the unit
//   DOT_LARGE                defined where several units at once would take too many registers
#ifndef GRETA_VULKAN_ROWS_FLOAT_H
#define GRETA_VULKAN_ROWS_FLOAT_H

layout(constant_id = 2) const uint kDepth = 256;
const uint kUnits = kDepth / 8;

// What a unit multiplies with: 8 values of x.
struct Values {
  vec4 x0, x1;
};
#endif
