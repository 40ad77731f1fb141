// What a gate multiplies by.
#ifndef GRETA_VULKAN_ACTIVATION_H
#define GRETA_VULKAN_ACTIVATION_H
#include "kernels/abi/ops.h"

// tanh of large values by drivers may be an infinity over an infinity.
float bounded_tanh(float x) { return tanh(clamp(x, -15, 15)); }

float gated(uint activation, float gate, float up) {
  if (activation == kActivationGelu)
    return 0.5 * gate * (1 + bounded_tanh(0.7978845608 * (gate + 0.044715 * gate * gate * gate))) * up;
  if (activation == kActivationClamped) {
    gate = min(gate, 7);
    return gate / (1 + exp(-1.702 * gate)) * (clamp(up, -7, 7) + 1);
  }
  return gate / (1 + exp(-gate)) * up;
}
#endif
