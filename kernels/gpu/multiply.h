// What multiply makes of a value (kernels/abi/multiply.h).
#ifndef GRETA_GPU_MULTIPLY_H
#define GRETA_GPU_MULTIPLY_H
#include "kernels/abi/multiply.h"
#include "kernels/gpu/math.h"

// The part of a normal distribution below x: with t = 1 / (1 + 0.35 |x|), for negative x it is
// t exp(p(t) - x^2 / 2). The polynomial was fitted over t by Chebyshev points, and is off by at most 5e-8.
float normal_below(float x) {
  const float magnitude = abs(x), t = 1 / (1 + 0.35f * magnitude);
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
  return x < 0 ? tail : 1 - tail;
}

// (exp(x) - 1) / x - 1 for x of at most 0. The difference would lose what is small, so a series serves there.
float expm1_ratio(float x) {
  float p = 1.0f / 5040;
  p = p * x + 1.0f / 720;
  p = p * x + 1.0f / 120;
  p = p * x + 1.0f / 24;
  p = p * x + 1.0f / 6;
  p = p * x + 0.5f;
  return x > -0.5f ? p * x : (exp_f32(x) - 1) / x - 1;
}

// ln(1 + exp(x)): with e = exp(-|x|) it is max(x, 0) + ln(1 + e), and ln(1 + e) = 2 atanh(e / (2 + e)).
float softplus(float x) {
  const float e = exp_f32(-abs(x)), s = e / (2 + e), z = s * s;
  float p = 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  p = p * z + 1;
  return (x > 0 ? x : 0) + 2 * s * p;
}

float multiplied(MultiplyBlock p, float x, float by) {
  if (p.factor == kFactorLogistic) return by / (1 + exp_f32(-x));
  if (p.factor == kFactorPositive && x < 0) return 0 * by;
  if (p.factor == kFactorGelu) return by / (1 + exp_f32(-1.59576912160573f * (x + 0.044715f * x * x * x)));
  if (p.factor == kFactorGeluErf) return normal_below(x) * by;
  if (p.factor == kFactorXielu)
    return (p.linear + (x > 0 ? p.positive * x : p.negative * expm1_ratio(x))) * by;
  if (p.factor == kFactorSoftplus) return softplus(x) * by;
  return x * by;
}
#endif
