// The activations of a gate (kActivation* in kernels/abi/ops.h).
#ifndef GRETA_VULKAN_ACTIVATION_H
#define GRETA_VULKAN_ACTIVATION_H
#include "kernels/abi/ops.h"
#include "kernels/gpu/math.h"

// The tanh approximation. Its factor 0.5 (1 + tanh u) is written as a logistic function.
float gelu(float x) { return x / (1 + exp(-1.5957691216 * (x + 0.044715 * x * x * x))); }

// activation(gate) * up.
float gated(uint activation, float gate, float up) {
  if (activation == kActivationGelu) return gelu(gate) * up;
  if (activation == kActivationClamped) {  // what is not finite becomes NaN
    const float g = if_finite(gate, min(gate, 7));
    return g / (1 + exp(-1.702 * g)) * (if_finite(up, clamp(up, -7, 7)) + 1);
  }
  return gate / (1 + exp(-gate)) * up;
}
#endif
