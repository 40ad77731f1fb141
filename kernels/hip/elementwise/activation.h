// The activations of a gate (kActivation* in kernels/abi/ops.h).
#pragma once
#include "kernels/abi/ops.h"
#include "kernels/hip/math.h"

DEVICE float silu(float x) { return x / (1 + exp_f32(-x)); }

// The tanh approximation. Its factor 0.5 (1 + tanh u) is written as a logistic function.
DEVICE float gelu(float x) { return x / (1 + exp_f32(-1.5957691216f * (x + 0.044715f * x * x * x))); }

// activation(gate) * up.
DEVICE float gated(uint activation, float gate, float up) {
  if (activation == kActivationGelu) return gelu(gate) * up;
  if (activation == kActivationClamped) {  // what is not finite becomes NaN
    const float g = if_finite(gate, min(gate, 7.f));
    return g / (1 + exp_f32(-1.702f * g)) * (if_finite(up, clamp(up, -7.f, 7.f)) + 1);
  }
  return silu(gate) * up;
}
