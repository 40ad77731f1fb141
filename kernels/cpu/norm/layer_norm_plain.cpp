// layer_norm_plain: y[i][h] = (x[i][h] - mean) / sqrt(variance + epsilon) * gain[h] + bias[h]     float32
//   grid    (rows)
//   group   one row with all its heads
//   scratch none
//   moves   x three times, y once
// The argument block is LayerNormBlock in kernels/abi/layer_norm.h.
#include "kernels/abi/layer_norm.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

// Adds f(x[i]) in the order of lanes.h.
template <class Function>
float sum_over(const float* x, uint32_t width, Function f) {
  Lanes lanes = {};
  for (uint32_t i = 0; i < width; ++i) lanes.part[i % kLanes / 4][i % 4] += f(x[i]);
  return sum_of(lanes);
}

void normalise(const LayerNormBlock& b, const float* x, uint64_t gains, float* y) {
  const float width = float(b.width);
  const float mean = sum_over(x, b.width, [](float v) { return v; }) / width;
  const float squares = sum_over(x, b.width, [=](float v) { return (v - mean) * (v - mean); });
  const float factor = 1.f / __builtin_sqrtf(squares / width + b.epsilon);
  const float* gain = b.gain ? (const float*)b.gain + gains : nullptr;
  const float* bias = b.bias ? (const float*)b.bias + gains : nullptr;
  for (uint32_t i = 0; i < b.width; ++i) {
    const float value = (x[i] - mean) * factor * (gain ? gain[i] : 1.f);
    y[i] = bias ? value + bias[i] : value;
  }
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const LayerNormBlock& b = *(const LayerNormBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i)
    for (uint32_t h = 0; h < b.heads; ++h) {
      const uint64_t gains = uint64_t(h) * b.width, row = uint64_t(b.heads) * b.width;
      normalise(b, (const float*)b.x + source_row(step, b.rows_of, i) * row + gains, gains,
                (float*)b.y + i * row + gains);
    }
}
