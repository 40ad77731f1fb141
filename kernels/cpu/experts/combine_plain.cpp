// combine_plain: y[t][i] = sum over j of weights[t][j] * x[t][j][i], in order of j
//   x [tokens][used][width] float32
//   grid    (tokens)
//   group   one token
//   scratch none
//   moves   x and y once; the weights once for each value, from the caches
// The argument block is CombineBlock in kernels/abi/ops.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const CombineBlock& b = *(const CombineBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) {
    const float* x = (const float*)b.x + uint64_t(t) * b.used * b.width;
    const float* weights = (const float*)b.weights + uint64_t(t) * b.used;
    float* y = (float*)b.y + uint64_t(t) * b.width;
    for (uint32_t i = 0; i < b.width; ++i) {
      float sum = 0;
      for (uint32_t j = 0; j < b.used; ++j) sum += weights[j] * x[uint64_t(j) * b.width + i];
      y[i] = sum;
    }
  }
}
