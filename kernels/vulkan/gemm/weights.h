// Weights on their way to shared memory as float16 (gpu/pieces.h). kSteps (gemm/tile.h) says whether both
// units of 64 columns are stored at a time (1) or one after the other (2). Threads of a subgroup store the
// same unit at the same time.
#ifndef GRETA_VULKAN_GEMM_WEIGHTS_H
#define GRETA_VULKAN_GEMM_WEIGHTS_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/gpu/quant.h"

// 1: weights are computed in float32 and rounded once. 0: in float16, with d * scale rounded too: errors of
// 3e-7 (NMSE) instead of 4e-8 for half of the instructions.
layout(constant_id = 6) const uint kRoundOnce = 1;

const float kMaxHalf = 65504;

uint half_pair(vec2 w) { return packFloat2x16(f16vec2(w)); }

uvec4 saturated(uvec4 words) {
  [[unroll]] for (int i = 0; i < 4; ++i) {
    const f16vec2 pair = unpackFloat2x16(words[i]);
    words[i] = packFloat2x16(clamp(pair, f16vec2(-kMaxHalf), f16vec2(kMaxHalf)));
  }
  return words;
}

// (q - bias) * scale + offset for the 8 bytes q.
uvec4 halves_of(uvec2 q, float bias, float scale, float offset, bool clip) {
  uvec4 words;
  [[unroll]] for (int i = 0; i < 2; ++i) {
    const f16vec2 even = unpackFloat2x16((q[i] & 0x00ff00ff) | 0x64006400) - f16vec2(1024 + bias);
    const f16vec2 odd = unpackFloat2x16((q[i] >> 8 & 0x00ff00ff) | 0x64006400) - f16vec2(1024 + bias);
    if (kRoundOnce != 0 || clip) {
      words[i * 2] = half_pair(fma(vec2(even.x, odd.x), vec2(scale), vec2(offset)));
      words[i * 2 + 1] = half_pair(fma(vec2(even.y, odd.y), vec2(scale), vec2(offset)));
    } else {
      const f16vec2 w0 = fma(even, f16vec2(scale), f16vec2(offset));
      const f16vec2 w1 = fma(odd, f16vec2(scale), f16vec2(offset));
      words[i * 2] = packFloat2x16(f16vec2(w0.x, w1.x));
      words[i * 2 + 1] = packFloat2x16(f16vec2(w0.y, w1.y));
    }
  }
  if (clip) words = saturated(words);
  return words;
}

#include "kernels/gpu/pieces.h"
#include "kernels/weight/pieces.h"  // made by the build: the header of the type in gpu/pieces
#endif
