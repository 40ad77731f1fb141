// Q4_0 in both layouts (quant/q4_0.h): a side is the low or the high halves of all bytes.
const uint kSideBytes = 0;
#include "kernels/gpu/pieces/shared/two_units.h"

bool may_overflow(Piece piece) {
  return max(abs(unpackHalf2x16(piece.d[0]).x), abs(unpackHalf2x16(piece.d[1]).x)) * 8 > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uvec2 q = half_of(piece.q[chunk / 2], chunk % 2) >> side * 4 & 0x0f0f0f0f;
  return halves_of(q, 8, unpackHalf2x16(piece.d[chunk / 2]).x, 0, clip);
}
