// What the scans add to kernels/cpu/math.h: how fast a state changes.
#pragma once
#include "kernels/cpu/math.h"

namespace {

// log(1 + u) for u from 0 to 1, by 2 atanh(u / (2 + u)).
inline float log_1_plus_f32(float u) {
  const float s = u / (2.f + u), z = s * s;
  float p = 0.0666666667f;
  p = p * z + 0.0769230769f;
  p = p * z + 0.0909090909f;
  p = p * z + 0.111111111f;
  p = p * z + 0.142857143f;
  p = p * z + 0.2f;
  p = p * z + 0.333333333f;
  return 2.f * (p * z * s + s);
}

// log(1 + exp(x)), with the relative precision of a float where x is far below 0. A rate has a limit for
// large numbers: infinity becomes NaN.
inline float softplus_f32(float x) {
  const float magnitude = x < 0 ? -x : x;
  return (x < 0 ? 0.f : x) + log_1_plus_f32(exp_f32(-magnitude)) + nan_unless_finite(x);
}

// The logistic function. Infinity becomes NaN.
inline float sigmoid_f32(float x) { return 1.f / (1.f + exp_f32(-x)) + nan_unless_finite(x); }

}  // namespace
