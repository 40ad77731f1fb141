// The sums of the plain matmuls. A subgroup makes a value of y, and its lanes take units of 32 columns in
// turn. Each unit is summed by itself; then come the lane's units, then the lanes.
#ifndef GRETA_VULKAN_UNIT_DOT_H
#define GRETA_VULKAN_UNIT_DOT_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require
#include "kernels/gpu/quant.h"

// The product of 32 weights and columns k .. of the row of x at the address `x`, which has `depth` columns.
float unit_dot(float w[kUnit], uint64_t x, uint k, uint depth) {
  float_address from = float_address(x + uint64_t(k) * 4);
  float sum = 0;
  if (kWholeUnits || k + kUnit <= depth) {
    [[unroll]] for (uint i = 0; i < kUnit; ++i) sum = fma(w[i], from.at[i], sum);
  } else {
    [[unroll]] for (uint i = 0; i < kUnit; ++i)
      if (k + i < depth) sum = fma(w[i], from.at[i], sum);
  }
  return sum;
}
#endif
