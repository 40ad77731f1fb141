// Weights on their way to shared memory as float16: a thread holds pieces of 32 weights as they were loaded, so
// that loads are under way while others multiply, and turns a piece into four words of 8 float16 values when it
// stores it. Rounded once, saturated to +-65504.
//
//   load_piece(row, depth, column, side)   one of the two pieces of columns column .. column + 63, column a multiple
//                                          of 64; zeros past `depth`
//   chunk_column(side, chunk)              where in those 64 the 8 weights of a chunk begin
//   chunk_of(piece, column, side, chunk)   these 8 weights
//
// The common types unpack integers in pairs: 0x6400 | q is the half 1024 + q. All others go through quant_decode.
#ifndef GRETA_VULKAN_GEMM_WEIGHTS_H
#define GRETA_VULKAN_GEMM_WEIGHTS_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/quant.h"

const float kMaxHalf = 65504;

uint half_pair(vec2 w) { return packFloat2x16(f16vec2(w)); }

uvec4 saturated(uvec4 words) {
  [[unroll]] for (int i = 0; i < 4; ++i) {
    const f16vec2 pair = unpackFloat2x16(words[i]);
    words[i] = packFloat2x16(clamp(pair, f16vec2(-kMaxHalf), f16vec2(kMaxHalf)));
  }
  return words;
}

// (q - bias) * scale + offset for the 8 bytes q. `most` bounds the result.
uvec4 halves_of(uvec2 q, float bias, float scale, float offset, float most) {
  uvec4 words;
  [[unroll]] for (int i = 0; i < 2; ++i) {
    const f16vec2 bias2 = f16vec2(1024 + bias);
    const vec2 even = vec2(unpackFloat2x16((q[i] & 0x00ff00ff) | 0x64006400) - bias2);
    const vec2 odd = vec2(unpackFloat2x16((q[i] >> 8 & 0x00ff00ff) | 0x64006400) - bias2);
    words[i * 2] = half_pair(fma(vec2(even.x, odd.x), vec2(scale), vec2(offset)));
    words[i * 2 + 1] = half_pair(fma(vec2(even.y, odd.y), vec2(scale), vec2(offset)));
  }
  if (most > kMaxHalf) words = saturated(words);
  return words;
}

uvec2 half_of(uvec4 words, uint i) { return i == 0 ? words.xy : words.zw; }

#if defined(WEIGHT_q4_k) || defined(WEIGHT_q6_k)
// 16 columns of one group of 32 and the same 16 of the next: K types keep both in the same bytes.
uint chunk_column(uint side, uint chunk) { return chunk / 2 * 32 + side * 16 + chunk % 2 * 8; }
#else
uint chunk_column(uint side, uint chunk) { return side * 32 + chunk * 8; }
#endif

#if defined(WEIGHT_q4_k)
struct Piece {
  uvec4 head, q;
};

Piece load_piece(uint64_t row, uint depth, uint column, uint side) {
  const uint64_t block = row + column / 256 * QUANT_BYTES;
  return Piece(load_16(block), load_16(block + 16 + column % 256 / 2 + side * 16));
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk) {
  const vec2 scale = scale_and_min(piece.head, column / 32 % 8 + chunk / 2);
  const uvec2 q = half_of(piece.q, chunk % 2) >> chunk / 2 * 4 & 0x0f0f0f0f;
  return halves_of(q, 0, scale.x, -scale.y, abs(scale.x) * 15 + abs(scale.y));
}

#elif defined(WEIGHT_q6_k)
struct Piece {
  uvec4 low[2], high;
  uint scales, d;
};

Piece load_piece(uint64_t row, uint depth, uint column, uint side) {
  const uint block = column / 256, half_block = column % 256 / 128;
  const uint64_t low = part(row, depth, block, 0) + half_block * 64 + side * 16;
  Piece piece;
  piece.low[0] = load_16(low);
  piece.low[1] = load_16(low + 32);
  piece.high = load_16(part(row, depth, block, 1) + half_block * 32 + side * 16);
  piece.scales = load_word(part(row, depth, block, 2) + column % 256 / 16);
  piece.d = load_u16(part(row, depth, block, 3));
  return piece;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk) {
  const uint pair = column % 128 / 64;  // the low or the high halves of the low bits
  const uvec2 low = half_of(piece.low[chunk / 2], chunk % 2) >> pair * 4 & 0x0f0f0f0f;
  const uvec2 high = half_of(piece.high, chunk % 2) >> (pair * 4 + chunk / 2 * 2) & 0x03030303;
  const int group = bitfieldExtract(int(piece.scales), int(chunk / 2 * 16 + side * 8), 8);
  const float scale = unpackHalf2x16(piece.d).x * float(group);
  return halves_of(low | high << 4, 32, scale, 0, abs(scale) * 32);
}

#elif defined(WEIGHT_q8_0)
struct Piece {
  uvec4 q[2];
  uint d;
};

Piece load_piece(uint64_t row, uint depth, uint column, uint side) {
  Piece piece = Piece(uvec4[2](uvec4(0), uvec4(0)), 0);
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return piece;
  const uint64_t q = part(row, depth, unit, 0);
  piece.q[0] = load_16(q);
  piece.q[1] = load_16(q + 16);
  piece.d = load_u16(part(row, depth, unit, 1));
  return piece;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk) {
  const float scale = unpackHalf2x16(piece.d).x;
  const uvec2 q = half_of(piece.q[chunk / 2], chunk % 2) ^ 0x80808080;
  return halves_of(q, 128, scale, 0, abs(scale) * 128);
}

#elif defined(WEIGHT_q4_0)
struct Piece {
  uvec4 q;
  uint d;
};

Piece load_piece(uint64_t row, uint depth, uint column, uint side) {
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return Piece(uvec4(0), 0);
  return Piece(load_16(part(row, depth, unit, 0)), load_u16(part(row, depth, unit, 1)));
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk) {
  const float scale = unpackHalf2x16(piece.d).x;
  const uvec2 q = half_of(piece.q, chunk % 2) >> chunk / 2 * 4 & 0x0f0f0f0f;
  return halves_of(q, 8, scale, 0, abs(scale) * 8);
}

#else
struct Piece {
  uvec4 chunk[4];
};

Piece load_piece(uint64_t row, uint depth, uint column, uint side) {
  Piece piece = Piece(uvec4[4](uvec4(0), uvec4(0), uvec4(0), uvec4(0)));
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return piece;
#ifdef WEIGHT_f16
  [[unroll]] for (int i = 0; i < 4; ++i) piece.chunk[i] = load_16_of_16(row + unit * 64 + i * 16);
#else
  float w[kUnit];
  quant_decode(row, depth, unit, w);
  [[unroll]] for (int i = 0; i < 16; ++i)
    piece.chunk[i / 4][i % 4] = half_pair(clamp(vec2(w[i * 2], w[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf)));
#endif
  return piece;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk) { return piece.chunk[chunk]; }
#endif

#endif
