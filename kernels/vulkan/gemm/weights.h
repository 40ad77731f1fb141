// Weights on their way to shared memory as float16: a thread holds pieces of 32 weights as they were loaded, so
// that loads are under way while others multiply, and turns a piece into four words of 8 float16 values when it
// stores it. Rounded once, saturated to +-65504. Threads of a subgroup store the same unit at the same time.
//
// kSteps (gemm/tile.h) says whether both units of 64 columns are stored at a time (1) or one after the other (2).
//   load_piece(piece, row, depth, column, side)   one of the two pieces of columns column .. column + 63, column a
//                                          multiple of 64; zeros past `depth`. `piece` is that of the 64 columns
//                                          before: what a block of 256 has once is loaded with its first columns
//   may_overflow(piece)                    some weight may be too large for float16
//   chunk_of(piece, column, side, chunk, clip)   8 weights, saturated where `clip`
//   chunk_unit(side, chunk)                in which 32 of the 64 columns they are
//   chunk_word(side, chunk)                and which 8 of these
//
// The common types unpack integers in pairs: 0x6400 | q is the half 1024 + q. All others go through quant_decode.
#ifndef GRETA_VULKAN_GEMM_WEIGHTS_H
#define GRETA_VULKAN_GEMM_WEIGHTS_H
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "kernels/vulkan/quant.h"

// 1: weights are computed in float32 and rounded once. 0: in float16, with d * scale rounded too: errors of 3e-7
// (NMSE) instead of 4e-8 for half of the instructions.
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
      const f16vec2 w0 = fma(even, f16vec2(scale), f16vec2(offset)), w1 = fma(odd, f16vec2(scale), f16vec2(offset));
      words[i * 2] = packFloat2x16(f16vec2(w0.x, w1.x));
      words[i * 2 + 1] = packFloat2x16(f16vec2(w0.y, w1.y));
    }
  }
  if (clip) words = saturated(words);
  return words;
}

// Of units `unit` and unit + 1 of a block, by selects: what an index that is no constant reaches lies in memory.
uint scales_of(uvec4 all_scales, uint unit) {
  const uvec2 words = unit < 4 ? all_scales.xy : all_scales.zw;
  return (unit & 2) == 0 ? words.x : words.y;
}

uvec2 half_of(uvec4 words, uint i) { return i == 0 ? words.xy : words.zw; }

#if (defined(WEIGHT_q4_k) || defined(WEIGHT_q6_k)) && defined(PLANES)
// A whole unit where both are stored at a time, else 16 columns of each. Two threads side by side bring a row's 32 bytes,
// and eight store to different banks.
uint row_of(uint piece) {
  return kSteps == 1 ? piece / 2 : piece / 16 * 8 + (piece >> 1 & 1 | piece & 4 | piece >> 2 & 2);
}
const uint kUnits = kSteps == 1 ? 1 : 2;  // of a piece
uint side_of(uint piece) { return piece % 2; }
uint chunk_unit(uint side, uint chunk) { return kSteps == 1 ? side : chunk / 2; }
uint chunk_word(uint side, uint chunk) { return kSteps == 1 ? chunk : side * 2 + chunk % 2; }
#elif defined(WEIGHT_q4_k) || defined(WEIGHT_q6_k) || defined(WEIGHT_q8_0) || defined(WEIGHT_q4_0) || \
    defined(WEIGHT_f16)
// 16 columns of one unit and the same 16 of the next: K types keep both in the same bytes.
// Two threads side by side bring a row's 32 bytes. Eight of them store to rows 0, 1, 4, 5 or 2, 3, 6, 7: different banks.
uint row_of(uint piece) { return piece / 16 * 8 + (piece >> 1 & 1 | piece & 4 | piece >> 2 & 2); }
uint side_of(uint piece) { return piece % 2; }
uint chunk_unit(uint side, uint chunk) { return chunk / 2; }
uint chunk_word(uint side, uint chunk) { return side * 2 + chunk % 2; }
#else
// A whole unit.
uint row_of(uint piece) { return piece / 64 * 32 + piece % 32; }
uint side_of(uint piece) { return piece / 32 % 2; }
uint chunk_unit(uint side, uint chunk) { return side; }
uint chunk_word(uint side, uint chunk) { return chunk; }
#endif

#if defined(WEIGHT_q4_k) && defined(PLANES)
struct Piece {
  uvec4 head, q[kUnits];
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  const uint unit = column / 32;
  if (unit % 8 == 0) piece.head = block_head(row, depth, unit / 8);
  piece.q[0] = unit_low(row, kSteps == 1 ? unit + side : unit);
  if (kSteps == 2) piece.q[kUnits - 1] = unit_low(row, unit + 1);
}

bool may_overflow(Piece piece) {
  const vec2 most = abs(unpackHalf2x16(piece.head.x)) * vec2(63 * 15, 63);
  return most.x + most.y > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uint unit = chunk_unit(side, chunk), word = chunk_word(side, chunk);
  const vec2 scale = unpackHalf2x16(piece.head.x) * vec2(plane_scales(piece.head, column / 32 % 8 + unit));
  const uvec2 q = half_of(piece.q[kSteps == 1 ? 0 : unit], word % 2) >> word / 2 * 4 & 0x0f0f0f0f;
  return halves_of(q, 0, scale.x, -scale.y, clip);
}

#elif defined(WEIGHT_q4_k)
struct Piece {
  uvec4 head, q;
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  const uint64_t block = row + column / 256 * QUANT_BYTES;
  if (column % 256 == 0) piece.head = load_16(block);
  piece.q = load_16(block + 16 + column % 256 / 2 + side * 16);
}

bool may_overflow(Piece piece) {
  const vec2 most = abs(unpackHalf2x16(piece.head.x)) * vec2(63 * 15, 63);
  return most.x + most.y > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const vec2 scale = scale_and_min(piece.head, column / 32 % 8 + chunk / 2);
  const uvec2 q = half_of(piece.q, chunk % 2) >> chunk / 2 * 4 & 0x0f0f0f0f;
  return halves_of(q, 0, scale.x, -scale.y, clip);
}

#elif defined(WEIGHT_q6_k) && defined(PLANES)
struct Piece {
  uvec4 low[kUnits], all_scales;
  uvec2 high[kUnits];
  uint scales, d;  // of both units
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  const uint block = column / 256, unit = column / 32;
  piece.low[0] = unit_low(row, kSteps == 1 ? unit + side : unit);
  piece.high[0] = unit_high(row, depth, kSteps == 1 ? unit + side : unit);
  if (kSteps == 2) {
    piece.low[kUnits - 1] = unit_low(row, unit + 1);
    piece.high[kUnits - 1] = unit_high(row, depth, unit + 1);
  }
  if (unit % 8 == 0) {
    piece.all_scales = load_16(part(row, depth, block, 2));
    piece.d = load_u16(part(row, depth, block, 3));
  }
  piece.scales = scales_of(piece.all_scales, unit % 8);
}

bool may_overflow(Piece piece) { return abs(unpackHalf2x16(piece.d).x) * (128 * 32) > kMaxHalf; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uint unit = chunk_unit(side, chunk), word = chunk_word(side, chunk), i = kSteps == 1 ? 0 : unit;
  const uvec4 high = spread_high(piece.high[i][word / 2]);
  const uvec2 q = (half_of(piece.low[i], word % 2) >> word / 2 * 4 & 0x0f0f0f0f) | half_of(high, word % 2);
  const int group = bitfieldExtract(int(piece.scales), int(unit * 16 + word / 2 * 8), 8);
  return halves_of(q, 32, unpackHalf2x16(piece.d).x * float(group), 0, clip);
}

#elif defined(WEIGHT_q6_k)
struct Piece {
  uvec4 low[2], high;
  uint scales, d;
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  const uint block = column / 256, half_block = column % 256 / 128;
  const uint64_t from = row + block * QUANT_BYTES, low = from + half_block * 64 + side * 16;
  piece.low[0] = load_16(low);
  piece.low[1] = load_16(low + 32);
  piece.high = load_16(from + 128 + half_block * 32 + side * 16);
  piece.scales = load_word(from + 192 + column % 256 / 16);
  if (column % 256 == 0) piece.d = load_u16(from + 208);
}

bool may_overflow(Piece piece) { return abs(unpackHalf2x16(piece.d).x) * (128 * 32) > kMaxHalf; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uint pair = column % 128 / 64;  // the low or the high halves of the low bits
  const uvec2 low = half_of(piece.low[chunk / 2], chunk % 2) >> pair * 4 & 0x0f0f0f0f;
  const uvec2 high = half_of(piece.high, chunk % 2) >> (pair * 4 + chunk / 2 * 2) & 0x03030303;
  const int group = bitfieldExtract(int(piece.scales), int(chunk / 2 * 16 + side * 8), 8);
  const float scale = unpackHalf2x16(piece.d).x * float(group);
  return halves_of(low | high << 4, 32, scale, 0, clip);
}

#elif defined(WEIGHT_q8_0) || defined(WEIGHT_q4_0)
#ifdef WEIGHT_q8_0
const uint kSideBytes = 16;
#else
const uint kSideBytes = 0;  // the low or the high halves of all bytes
#endif

struct Piece {
  uvec4 q[2];
  uint d[2];
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    const uint unit = column / 32 + i;
    const bool there = unit * 32 < depth;
    piece.q[i] = there ? load_16(part(row, depth, unit, 0) + side * kSideBytes) : uvec4(0);
    piece.d[i] = there ? load_u16(part(row, depth, unit, 1)) : 0;
  }
}

#ifdef WEIGHT_q8_0
bool may_overflow(Piece piece) {
  return max(abs(unpackHalf2x16(piece.d[0]).x), abs(unpackHalf2x16(piece.d[1]).x)) * 128 > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uvec2 q = half_of(piece.q[chunk / 2], chunk % 2) ^ 0x80808080;
  return halves_of(q, 128, unpackHalf2x16(piece.d[chunk / 2]).x, 0, clip);
}
#else
bool may_overflow(Piece piece) {
  return max(abs(unpackHalf2x16(piece.d[0]).x), abs(unpackHalf2x16(piece.d[1]).x)) * 8 > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uvec2 q = half_of(piece.q[chunk / 2], chunk % 2) >> side * 4 & 0x0f0f0f0f;
  return halves_of(q, 8, unpackHalf2x16(piece.d[chunk / 2]).x, 0, clip);
}
#endif

#else
struct Piece {
  uvec4 chunk[4];
};

#ifdef WEIGHT_f16
void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint at = column + chunk_unit(side, i) * 32 + chunk_word(side, i) * 8;
    piece.chunk[i] = at < depth ? load_16_of_16(row + at * 2) : uvec4(0);
  }
}
#else
void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  piece = Piece(uvec4[4](uvec4(0), uvec4(0), uvec4(0), uvec4(0)));
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return;
  float w[kUnit];
  quant_decode(row, depth, unit, w);
  [[unroll]] for (int i = 0; i < 16; ++i)
    piece.chunk[i / 4][i % 4] = half_pair(clamp(vec2(w[i * 2], w[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf)));
}
#endif

bool may_overflow(Piece piece) { return false; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) { return piece.chunk[chunk]; }
#endif

#endif
