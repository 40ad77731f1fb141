// Stores results as float16 too, saturated, for the GEMM that reads them. Nothing is stored where `halves` is
// 0.
#ifndef GRETA_VULKAN_HALVES_H
#define GRETA_VULKAN_HALVES_H
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)
GRETA_ABI_BUFFER(f16vec4, f16vec4, 8)

void store_half(byte_address halves, uint at, float y) {
  if (uint64_t(halves) != 0)
    float16_address(uint64_t(halves)).at[at] = float16_t(clamp(y, -65504.0, 65504.0));
}

// Stores values at .. at + 3; `at` is a multiple of 4.
void store_halves(byte_address halves, uint at, vec4 y) {
  if (uint64_t(halves) != 0)
    f16vec4_address(uint64_t(halves)).at[at / 4] = f16vec4(clamp(y, vec4(-65504), vec4(65504)));
}
#endif
