// Weights on their way to shared memory as float16, for products with matrices. A thread holds pieces of 32
// weights as they were loaded, so that loads are under way while others multiply. It turns a piece into four
// words of 8 float16 values when it stores it, rounded once and saturated to +-65504.
//
// gpu/pieces/<type>.h, or <type>_planes.h for the layout of planes, says how a type's pieces are loaded. It
// unpacks integers in pairs: 0x6400 | q is the half 1024 + q. Types without such a file go through
// quant_decode (pieces/any.h).
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
// Who includes such a file defines before:
//   kSteps                          whether a thread stores both units of 64 columns at a time (1), or one
//                                   after the other (2)
//   kMaxHalf                        the largest float16
//   half_pair(w)                    two weights rounded to a word
//   halves_of(q, bias, scale, offset, clip)   a word of (q - bias) * scale + offset for the 8 bytes q
#ifndef GRETA_GPU_PIECES_H
#define GRETA_GPU_PIECES_H
#include "kernels/gpu/quant.h"

#ifdef GL_core_profile
#define INOUT(T) inout T
#else
#define INOUT(T) T&
#endif

// The scales of units `unit` and unit + 1 of a block, by selects: an array that is indexed by what is no
// constant would lie in memory.
uint scales_of(uvec4 all_scales, uint unit) {
  const uvec2 words = unit < 4 ? all_scales.xy : all_scales.zw;
  return (unit & 2) == 0 ? words.x : words.y;
}

uvec2 half_of(uvec4 words, uint i) { return i == 0 ? words.xy : words.zw; }
#endif
