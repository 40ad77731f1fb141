// softmax_plain: y[r] = exp(z[r]) / (sum of exp(z[r]) + exp(sink)), or its logarithm, of scores z made of x
//   grid    (rows of the step)
//   group   `heads` rows of x
//   scratch none
//   moves   x and mask once, y three times
// The argument block is SoftmaxBlock in kernels/abi/softmax.h.
#include "kernels/abi/softmax.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// ln(x) of a number that is 1 or more: with x = 2^n m, and m from 0.7 to 1.4, it is
// n ln 2 + 2 atanh((m - 1) / (m + 1)). NaN and infinity become NaN.
float log_f32(float x) {
  const uint32_t shifted = bits_of(x) + (0x3f800000u - 0x3f3504f3u);
  const float n = float(int32_t(shifted >> 23) - 127);
  const float m = float_of((shifted & 0x7fffffu) + 0x3f3504f3u);
  const float s = (m - 1) / (m + 1), z = s * s;
  float p = 1.f / 9;
  p = p * z + 1.f / 7;
  p = p * z + 1.f / 5;
  p = p * z + 1.f / 3;
  p = p * z + 1.f;
  return n * 0.693359375f + (2 * s * p - n * 2.12194440e-4f) + nan_unless_finite(x);
}

// Puts the scores of a row into y. Returns the largest one, which NaN may hide.
float make_scores(const SoftmaxBlock& b, const float* x, const float* mask, float most, float* y) {
  for (uint32_t i = 0; i < b.width; ++i) {
    const float z = b.scale * x[i];
    y[i] = (b.cap > 0 ? softcap_f32(b.cap, z) : z) + (mask ? mask[i] : 0);
    most = y[i] > most ? y[i] : most;
  }
  return most;
}

void make_row(const SoftmaxBlock& b, uint64_t r) {
  const float* x = (const float*)b.x + r * b.x_stride;
  const float* mask = b.mask ? (const float*)b.mask + r / b.mask_every % b.mask_rows * b.width : nullptr;
  const float sink = b.sinks ? ((const float*)b.sinks)[r / b.sink_every % b.sink_count] : kMinusInfinity;
  float* y = (float*)b.y + r * b.y_stride;
  const float most = make_scores(b, x, mask, sink, y);
  const float base = most == kMinusInfinity ? 0 : most;
  Lanes lanes = {};
  for (uint32_t i = 0; i < b.width; ++i) {
    const float power = exp_f32(y[i] - base);
    lanes.part[i % kLanes / 4][i % 4] += power;
    if (!b.logarithm) y[i] = power;
  }
  const float sum = sum_of(lanes) + exp_f32(sink - base);
  if (b.logarithm) {
    const float log_sum = log_f32(sum);
    for (uint32_t i = 0; i < b.width; ++i) y[i] = sum == 0 ? kMinusInfinity : y[i] - base - log_sum;
    return;
  }
  const float factor = 1 / sum;
  for (uint32_t i = 0; i < b.width; ++i) y[i] = sum == 0 ? 0 : y[i] * factor;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const SoftmaxBlock& b = *(const SoftmaxBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i)
    for (uint64_t r = uint64_t(i) * b.heads; r < uint64_t(i + 1) * b.heads && r < b.rows; ++r) make_row(b, r);
}
