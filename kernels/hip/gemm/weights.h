// Weights on their way to shared memory as float16 (gpu/pieces.h). The build defines BY_TYPE, the header of
// the type.
#pragma once
#include "kernels/hip/glsl.h"

namespace {
constexpr uint kSteps = 1;  // a thread stores both units of 64 columns at a time
constexpr float kMaxHalf = 65504;

WORD vec2 abs(vec2 a) { return __builtin_elementwise_abs(a); }
WORD vec2 clamp(vec2 a, vec2 least, vec2 most) {
  return __builtin_elementwise_min(__builtin_elementwise_max(a, least), most);
}

WORD uint half_pair(vec2 w) { return __builtin_bit_cast(uint, __builtin_convertvector(w, f16vec2)); }

// A word of (q - bias) * scale + offset for the 8 bytes q. It is not clipped: may_overflow() is asked for the
// whole piece.
DEVICE uvec4 halves_of(uvec2 q, float bias, float scale, float offset, bool) {
  uvec4 words;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    // Two bytes between bytes 0x64 are the halves 1024 + q.
    const uint bits = pick_bytes(q[i / 2], 0x64646464, i % 2 ? 0x04030402 : 0x04010400);
    const float16_t zero = float16_t(1024 + bias);
    const f16vec2 pair = __builtin_bit_cast(f16vec2, bits) - f16vec2{zero, zero};
    words[i] = half_pair(vec2(fma(float(pair.x), scale, offset), fma(float(pair.y), scale, offset)));
  }
  return words;
}

// The largest halves in place of infinite ones, whose bits are 1 more.
DEVICE uvec4 saturated(uvec4 words) {
  return words - (((words & 0x7fff7fff) + 0x04000400) >> 15 & 0x00010001);
}
}  // namespace

GLSL_BEGIN
#include "kernels/gpu/pieces.h"
#include BY_TYPE
GLSL_END
