// Results as float16 too, saturated, for the tiles that read them.
#ifndef GRETA_VULKAN_HALVES_H
#define GRETA_VULKAN_HALVES_H
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/abi.h"

GRETA_ABI_BUFFER(float16, float16_t, 2)

void store_half(byte_address halves, uint at, float y) {
  if (uint64_t(halves) != 0) float16_address(uint64_t(halves)).at[at] = float16_t(clamp(y, -65504.0, 65504.0));
}
#endif
