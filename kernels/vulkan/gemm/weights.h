// Weights on their way to shared memory as float16. A thread holds pieces of 32 weights as they were loaded,
// so that loads are under way while others multiply. It turns a piece into four words of 8 float16 values
// when it stores it, rounded once and saturated to +-65504. Threads of a subgroup store the same unit at the
// same time.
//
// gemm/pieces/<type>.h, or <type>_planes.h for the layout of planes, says how a type's pieces are loaded. It
// unpacks integers in pairs: 0x6400 | q is the half 1024 + q. Types without such a file go through
// quant_decode (pieces/any.h). kSteps (gemm/tile.h) says whether both units of 64 columns are stored at a
// time (1) or one after the other (2).
//   row_of(piece), side_of(piece)   of piece number `piece` of the group: the row of the tile, and which of
//                                   the row's two pieces it is, 0 or 1
//   Piece                           what a thread holds of a piece
//   load_piece(piece, row, depth, column, side)   piece `side` of columns column .. column + 63, column a
//                                   multiple of 64; zeros past `depth`. `piece` is that of the 64 columns
//                                   before: what a block of 256 has once is loaded with its first columns
//   may_overflow(piece)             whether some weight may be too large for float16
//   chunk_of(piece, column, side, chunk, clip)   8 weights, saturated where `clip`
//   chunk_unit(side, chunk)         in which 32 of the 64 columns they are
//   chunk_word(side, chunk)         and which 8 of these
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

// The scales of units `unit` and unit + 1 of a block, by selects: an array that is indexed by what is no
// constant would lie in memory.
uint scales_of(uvec4 all_scales, uint unit) {
  const uvec2 words = unit < 4 ? all_scales.xy : all_scales.zw;
  return (unit & 2) == 0 ? words.x : words.y;
}

uvec2 half_of(uvec4 words, uint i) { return i == 0 ? words.xy : words.zw; }

#include "kernels/weight/pieces.h"  // made by the build: the header of the type in gemm/pieces
#endif
