// multiply_plain: y[t][h][i] = factor(x[t][h][i]) * by[t][h][i]     [tokens][heads][width] float32
//   grid    (tokens)
//   group   one token
//   scratch none
//   moves   x, by and y once
// The argument block is MultiplyBlock in kernels/abi/multiply.h.
#include "kernels/abi/multiply.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

static void multiply(uint32_t factor, const float* x, const float* by, float* y, uint32_t width) {
  if (factor == kFactorLogistic)
    for (uint32_t i = 0; i < width; ++i) y[i] = by[i] / (1.f + exp_f32(-x[i]));
  else if (factor == kFactorPositive)
    for (uint32_t i = 0; i < width; ++i) y[i] = (x[i] < 0.f ? 0.f : x[i]) * by[i];
  else
    for (uint32_t i = 0; i < width; ++i) y[i] = x[i] * by[i];
}

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const MultiplyBlock& b = *(const MultiplyBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t)
    for (uint32_t h = 0; h < b.heads; ++h) {
      const uint64_t at = uint64_t(t) * b.heads + h;
      multiply(b.factor, (const float*)b.x + at * b.x_stride, (const float*)b.by + at * b.by_stride,
               (float*)b.y + at * b.width, b.width);
    }
}
