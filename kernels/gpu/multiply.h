// What multiply makes of a value (kernels/abi/multiply.h).
#ifndef GRETA_GPU_MULTIPLY_H
#define GRETA_GPU_MULTIPLY_H
#include "kernels/abi/multiply.h"
#include "kernels/gpu/math.h"

float multiplied(uint factor, float x, float by) {
  if (factor == kFactorLogistic) return by / (1 + exp_f32(-x));
  if (factor == kFactorPositive && x < 0) return 0 * by;
  return x * by;
}
#endif
