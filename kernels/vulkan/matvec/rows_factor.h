// The factor of a norm in a decode kernel, from sums of squares that subgroups leave in shared memory.
#ifndef GRETA_VULKAN_ROWS_FACTOR_H
#define GRETA_VULKAN_ROWS_FACTOR_H
#include "kernels/vulkan/matvec/rows_streams.h"

shared float squares[kSubgroups];

// Leaves the sum of a subgroup's lanes as sum `part`; a barrier before norm_factor().
void share_squares(float sum, uint part) {
  sum = lanes_sum(sum);
  if (gl_SubgroupInvocationID == 0) squares[part] = sum;
}

// Of `width` values, whose squares are in the first `parts` sums.
float norm_factor(uint parts, uint width, float epsilon) {
  float sum = 0;
  [[unroll]] for (uint i = 0; i < parts; ++i) sum += squares[i];
  return inversesqrt(sum / float(width) + epsilon);
}

#endif
