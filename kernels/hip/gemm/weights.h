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

// A word of (q - bias) * scale + offset for the 8 bytes q, rounded once: one of `bias` and `offset` is 0, and
// `bias` a power of two. It is not clipped: may_overflow() is asked for the whole piece.
DEVICE uvec4 halves_of(uvec2 q, float bias, float scale, float offset, bool) {
  const float step = scale * 0x1p24f, zero = bias ? -bias * scale : offset;
  uvec4 words;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    // Two bytes below bytes that are 0 are the denormal halves q / 2^24.
    const uint bits = pick_bytes(q[i / 2], 0, i % 2 ? 0x0c030c02 : 0x0c010c00);
    const auto pair = __builtin_bit_cast(f16vec2, bits);
    words[i] = half_pair(vec2(fma(float(pair.x), step, zero), fma(float(pair.y), step, zero)));
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
