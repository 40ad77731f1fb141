// Exponential and tanh in plain arithmetic, as in kernels/cpu/math.h, since the precision of exp() depends on
// the driver. Nothing depends on two sums being rounded alike: lavapipe contracts even what is `precise`.
#ifndef GRETA_GPU_MATH_H
#define GRETA_GPU_MATH_H
#ifdef GL_core_profile
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif

// These work on bits, which no compiler optimises away: min(), max() and clamp() may give either operand
// where one is NaN.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
// `value` where x is finite, else NaN.
float if_finite(float x, float value) { return is_finite(x) ? value : uintBitsToFloat(0x7fc00000u); }

// In the range of float16, so that what is too large saturates. What is not finite becomes NaN.
float in_half_range(float x) { return if_finite(x, clamp(x, -65504.0f, 65504.0f)); }

// Cephes' expf: x = n ln 2 + r, a polynomial in r, times 2^n in two factors. NaN stays NaN.
float exp_f32(float x) {
  const float given = x;
  x = clamp(x, -110.0f, 90.0f);
  const float n = roundEven(x * 1.44269504088896341f);
  precise float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  precise float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  const int exponent = int(n);
  const int half_exponent = exponent >> 1;
  const float power = p * intBitsToFloat((half_exponent + 127) << 23) *
      intBitsToFloat((exponent - half_exponent + 127) << 23);
  return is_nan(given) ? given : power;
}

float tanh_f32(float x) {
  const float magnitude = abs(x);
  const float large = 1 - 2 / (exp_f32(2 * magnitude) + 1);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  return magnitude < 0.625f ? p * z * x + x : x < 0 ? -large : large;
}

// A cap is for large numbers: infinity becomes NaN.
float softcap_f32(float cap, float x) { return if_finite(x, cap * tanh_f32(x / cap)); }

// Rounds to nearest even with integers, since each driver may round packHalf2x16 in its own way.
uint f32_to_f16(float value) {
  const uint bits = floatBitsToUint(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;  // 65536 and more
  if (magnitude < 0x38800000u) {                        // a unit of 0.5's mantissa is 2^-24
    precise float shifted = uintBitsToFloat(magnitude) + 0.5f;
    return sign | (floatBitsToUint(shifted) - floatBitsToUint(0.5f));
  }
  return sign | ((magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13);
}

// a / b rounded to nearest even, for positive a and b. A driver's division may be off by two units in the
// last place, but the int8 formats must have the same bytes everywhere. Where a, b or the result is denormal,
// the driver divides.
float divide_exactly(float a, float b) {
  const uvec2 bits = uvec2(floatBitsToUint(a), floatBitsToUint(b)), exponents = bits >> 23;
  const uvec2 mantissas = (bits & 0x7fffffu) | 0x800000u;
  const uint64_t shifted = uint64_t(mantissas.x) << 26;
  const uint quotient = uint(shifted / mantissas.y);  // in [2^25, 2^27)
  const uint dropped = quotient < 1u << 26 ? 2 : 3;
  const uint remainder =
      (quotient & ((1 << dropped) - 1)) << 1 | uint(uint64_t(quotient) * mantissas.y != shifted);
  const uint half_way = 1 << dropped;
  uint mantissa = quotient >> dropped;
  mantissa += uint(remainder > half_way || (remainder == half_way && (mantissa & 1) != 0));
  const int exponent = int(exponents.x) - int(exponents.y) + 124 + int(dropped);
  if (exponents.x == 0 || exponents.y == 0 || exponent < 1 || exponent > 253 || exponents.x == 255)
    return a / b;
  return uintBitsToFloat((uint(exponent) << 23) + (mantissa - 0x800000u));
}

// An integer for each float that is not NaN, in the order of floats. All are above 0, and both zeros have the
// same.
uint key_of(float x) {
  const uint bits = x == 0 ? 0 : floatBitsToUint(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
float of_key(uint key) { return uintBitsToFloat((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key); }
#endif
