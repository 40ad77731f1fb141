// Exponential, tanh and the activations, within 2 units in the last place, the same bits everywhere:
// no library is called. Branch-free where loops over rows want to be vectorised.
#pragma once
#include "kernels/abi/ops.h"
#include "kernels/cpu/half.h"

namespace {

// Cephes' expf: x = n ln 2 + r, a polynomial in r, and 2^n applied in two steps, so that results run
// into 0 and infinity without leaving the float range on the way. NaN stays NaN.
inline float exp_f32(float x) {
  x = x < -110.f ? -110.f : x;
  x = x > 90.f ? 90.f : x;
  const float shift = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504088896341f + shift;
  const float n = shifted - shift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.f;
  const int32_t exponent = int32_t(bits_of(shifted) - bits_of(shift));
  const int32_t half = exponent >> 1;
  return p * float_of(uint32_t(half + 127) << 23) * float_of(uint32_t(exponent - half + 127) << 23);
}

inline float tanh_f32(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float large = 1.f - 2.f / (exp_f32(magnitude + magnitude) + 1.f);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  return magnitude < 0.625f ? p * z * x + x : x < 0 ? -large : large;
}

inline float silu_f32(float x) { return x / (1.f + exp_f32(-x)); }

// The tanh approximation; 0.5 (1 + tanh u) is written as a logistic function, which loses nothing to
// cancellation where the result is small.
inline float gelu_f32(float x) {
  const float u = 0.797884560802865f * (x + 0.044715f * x * x * x);
  return x / (1.f + exp_f32(-2.f * u));
}

// NaN where x is not finite, else 0.
inline float nan_unless_finite(float x) { return x - x; }

// Limits are for large numbers: infinity becomes NaN.
inline float clamped_swiglu_f32(float gate, float up) {
  const float g = gate > 7.f ? 7.f : gate;
  const float u = up > 7.f ? 7.f : up < -7.f ? -7.f : up;
  return g / (1.f + exp_f32(-1.702f * g)) * (u + 1.f) + nan_unless_finite(gate) + nan_unless_finite(up);
}

inline float gated(uint32_t activation, float gate, float up) {
  if (activation == kActivationClamped) return clamped_swiglu_f32(gate, up);
  return (activation == kActivationGelu ? gelu_f32(gate) : silu_f32(gate)) * up;
}

// A cap is for large numbers: infinity becomes NaN.
inline float softcap_f32(float cap, float x) { return cap * tanh_f32(x / cap) + nan_unless_finite(x); }

}  // namespace
