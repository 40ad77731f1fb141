// multiply_plain: y[t][h][i] = factor(x[t][h][i * x_step]) * by[t][h][i]     [tokens][heads][width] float32
//   grid    (tokens)
//   group   one token
//   scratch none
//   moves   x, by and y once
// The argument block is MultiplyBlock in kernels/abi/multiply.h.
#include "kernels/abi/multiply.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

// As kernels/gpu/multiply.h explains them.
static float normal_below(float x) {
  const float magnitude = x < 0.f ? -x : x, t = 1.f / (1.f + 0.35f * magnitude);
  float p = 0.157801984f;
  p = p * t - 0.763207802f;
  p = p * t + 1.37538388f;
  p = p * t - 1.00056274f;
  p = p * t + 0.151739392f;
  p = p * t - 0.0993055157f;
  p = p * t + 0.0711085019f;
  p = p * t + 0.383397493f;
  p = p * t + 0.999219856f;
  p = p * t - 1.96872218f;
  const float tail = t * exp_f32(p - 0.5f * x * x);
  return x < 0.f ? tail : 1.f - tail;
}

static float expm1_ratio(float x) {
  float p = 1.f / 5040.f;
  p = p * x + 1.f / 720.f;
  p = p * x + 1.f / 120.f;
  p = p * x + 1.f / 24.f;
  p = p * x + 1.f / 6.f;
  p = p * x + 0.5f;
  return x > -0.5f ? p * x : (exp_f32(x) - 1.f) / x - 1.f;
}

static float softplus(float x) {
  const float e = exp_f32(x < 0.f ? x : -x), s = e / (2.f + e), z = s * s;
  float p = 1.f / 13.f;
  p = p * z + 1.f / 11.f;
  p = p * z + 1.f / 9.f;
  p = p * z + 1.f / 7.f;
  p = p * z + 1.f / 5.f;
  p = p * z + 1.f / 3.f;
  p = p * z + 1.f;
  return (x > 0.f ? x : 0.f) + 2.f * s * p;
}

// What `result` makes of each pair of values of a head.
template <typename Result>
static void multiply(const MultiplyBlock& b, uint64_t head, Result result) {
  const float* x = (const float*)b.x + head * b.x_stride;
  const float* by = (const float*)b.by + head * b.by_stride;
  float* y = (float*)b.y + head * b.width;
  if (b.x_step)
    for (uint32_t i = 0; i < b.width; ++i) y[i] = result(x[i], by[i]);
  else
    for (uint32_t i = 0; i < b.width; ++i) y[i] = result(*x, by[i]);
}

static void multiply_head(const MultiplyBlock& b, uint64_t head) {
  switch (b.factor) {
    case kFactorLogistic:
      return multiply(b, head, [](float x, float by) { return by / (1.f + exp_f32(-x)); });
    case kFactorPositive:
      return multiply(b, head, [](float x, float by) { return (x < 0.f ? 0.f : x) * by; });
    case kFactorGelu:
      return multiply(b, head, [](float x, float by) {
        return by / (1.f + exp_f32(-1.59576912160573f * (x + 0.044715f * x * x * x)));
      });
    case kFactorGeluErf:
      return multiply(b, head, [](float x, float by) { return normal_below(x) * by; });
    case kFactorXielu:
      return multiply(b, head, [&](float x, float by) {
        return (b.linear + (x > 0.f ? b.positive * x : b.negative * expm1_ratio(x))) * by;
      });
    case kFactorSoftplus:
      return multiply(b, head, [](float x, float by) { return softplus(x) * by; });
    default:
      return multiply(b, head, [](float x, float by) { return x * by; });
  }
}

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const MultiplyBlock& b = *(const MultiplyBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t)
    for (uint32_t h = 0; h < b.heads; ++h) multiply_head(b, uint64_t(t) * b.heads + h);
}
