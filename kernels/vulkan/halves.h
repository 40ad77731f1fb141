// Stores results as float16 too, saturated, for the GEMM that reads them. What is not finite is stored as
// NaN, and nothing is stored where `halves` is 0.
#ifndef GRETA_VULKAN_HALVES_H
#define GRETA_VULKAN_HALVES_H
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/gpu/math.h"
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(f16vec4, f16vec4, 8)

f16vec4 to_halves(vec4 y) {
  return f16vec4(in_half_range(y.x), in_half_range(y.y), in_half_range(y.z), in_half_range(y.w));
}

void store_half(byte_address halves, uint at, float y) {
  if (uint64_t(halves) != 0)
    float16_address(uint64_t(halves)).at[at] = float16_t(in_half_range(y));
}

// Stores values at .. at + 3; `at` is a multiple of 4.
void store_halves(byte_address halves, uint at, vec4 y) {
  if (uint64_t(halves) != 0)
    f16vec4_address(uint64_t(halves)).at[at / 4] = to_halves(y);
}
#endif
