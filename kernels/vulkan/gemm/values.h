// Single values of the operands of gemm, by their type (kernels/abi/gemm.h).
#ifndef GRETA_VULKAN_GEMM_VALUES_H
#define GRETA_VULKAN_GEMM_VALUES_H
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "kernels/vulkan/device.h"
#include "kernels/abi/gemm.h"

GRETA_ABI_BUFFER(uint16, uint16_t, 2)

float load_value(uint64_t from, uint type, uint64_t at) {
  if (type == kGemmF32) return float_address(from + at * 4).at[0];
  const uint bits = uint(uint16_address(from + at * 2).at[0]);
  return type == kGemmF16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}

// The upper half of a float32, rounded to nearest, halves to even; a NaN stays one.
uint to_bf16(float value) {
  const uint bits = floatBitsToUint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}

// float16, where what is too large becomes infinite.
uint to_f16(float value) { return packHalf2x16(vec2(value, 0)) & 0xffffu; }

void store_value(uint64_t to, uint type, uint64_t at, float value) {
  if (type == kGemmF32)
    float_address(to + at * 4).at[0] = value;
  else
    uint16_address(to + at * 2).at[0] = uint16_t(type == kGemmF16 ? to_f16(value) : to_bf16(value));
}
#endif
