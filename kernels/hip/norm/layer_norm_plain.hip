// layer_norm_plain: y[i][h] = (x[i][h] - mean) / sqrt(variance + epsilon) * gain[h] + bias[h]     float32
//   grid    (rows)
//   group   GROUP threads, which together normalise one head of the row after the other
//   shared  8 bytes a wave for sums
//   moves   x three times, y once
// The argument block is LayerNormBlock in kernels/abi/layer_norm.h.
#include "kernels/abi/layer_norm.h"
#include "kernels/hip/reduce.h"
#include "kernels/hip/step.h"

// Normalises the head at `from`; its gain and bias begin at `gains`.
DEVICE void normalise(const LayerNormBlock& p, uint from, uint gains, uint to) {
  float sum = 0, squares = 0;
  for (uint i = thread_x(); i < p.width; i += GROUP) sum += p.x[from + i];
  const float mean = group_sum(sum) / float(p.width);
  for (uint i = thread_x(); i < p.width; i += GROUP) {
    const float apart = p.x[from + i] - mean;
    squares += apart * apart;
  }
  const float factor = 1 / __builtin_sqrtf(group_sum(squares) / float(p.width) + p.epsilon);
  for (uint i = thread_x(); i < p.width; i += GROUP) {
    float y = (p.x[from + i] - mean) * factor;
    if (p.gain) y *= p.gain[gains + i];
    if (p.bias) y += p.bias[gains + i];
    p.y[to + i] = y;
  }
}

KERNEL(GROUP) void KERNEL_NAME(LayerNormBlock p) {
  const Step step = step_of(p.step);
  const uint row = group_x(), values = p.heads * p.width;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * values;
  for (uint gains = 0; gains < values; gains += p.width)
    normalise(p, from + gains, gains, row * values + gains);
}
