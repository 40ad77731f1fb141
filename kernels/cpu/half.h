// float16 and bfloat16 to and from float32 in integer arithmetic: exact, round to nearest even, the
// same bits on every processor and whatever the flush-to-zero mode of the host program.
#pragma once
#include <stdint.h>

namespace {

inline uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }

inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// The magnitude as bits, whose order is that of the numbers, with infinity and then NaN above all.
inline uint32_t magnitude_bits(float value) { return bits_of(value) & 0x7fffffffu; }

inline uint16_t load_u16(const void* at) {
  uint16_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

inline void store_u16(void* at, uint16_t value) { __builtin_memcpy(at, &value, sizeof value); }

inline uint32_t load_u32(const void* at) {
  uint32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t shifted = (half & 0x7fffu) << 13;
  const uint32_t normal = shifted + (112u << 23);   // the two biases differ by 112
  const uint32_t special = shifted + (224u << 23);  // infinity and NaN
  // A denormal is its mantissa in units of 2^-24: set below 2^-14, then take 2^-14 away.
  const uint32_t denormal = bits_of(float_of(shifted + (113u << 23)) - float_of(113u << 23));
  // Chosen by masks: a loop of this is vectorised, one with branches is not.
  const uint32_t is_denormal = 0u - uint32_t(exponent == 0), is_special = 0u - uint32_t(exponent == 0x7c00u);
  const uint32_t finite = (denormal & is_denormal) | (normal & ~is_denormal);
  return float_of(sign | (special & is_special) | (finite & ~is_special));
}

inline uint16_t f32_to_f16(float value) {
  const uint32_t sign = (bits_of(value) >> 16) & 0x8000u;
  const uint32_t magnitude = magnitude_bits(value);
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;  // NaN
  } else if (magnitude >= 0x47800000u) {
    half = 0x7c00u;  // 65536 and more
  } else if (magnitude < 0x38800000u) {
    half = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);  // a unit of 0.5f's mantissa is 2^-24
  } else {
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  }
  return uint16_t(sign | half);
}

// Nearest integer, halves to even, for |x| < 2^22.
inline int32_t round_even(float x) { return int32_t(bits_of(x + 12582912.f) - bits_of(12582912.f)); }

inline float load_f16(const void* at) { return f16_to_f32(load_u16(at)); }
inline float load_bf16(const void* at) { return float_of(uint32_t(load_u16(at)) << 16); }

}  // namespace
