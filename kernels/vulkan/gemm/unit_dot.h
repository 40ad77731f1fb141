// The sums of the plain matmuls: a subgroup makes a value of y, its lanes take units of 32 columns in turn, each
// unit is summed by itself, then the lane's units, then the lanes.
#ifndef GRETA_VULKAN_UNIT_DOT_H
#define GRETA_VULKAN_UNIT_DOT_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_basic : require

// Weights times columns k .. of the row at address `x`, which has `depth` of them.
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
