// Q8_0 in both layouts (quant/q8_0.h).
const uint kSideBytes = 16;
#include "kernels/gpu/pieces/shared/two_units.h"

bool may_overflow(Piece piece) {
  return max(abs(unpackHalf2x16(piece.d[0]).x), abs(unpackHalf2x16(piece.d[1]).x)) * 128 > kMaxHalf;
}

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) {
  const uvec2 q = half_of(piece.q[chunk / 2], chunk % 2) ^ 0x80808080;
  return halves_of(q, 128, unpackHalf2x16(piece.d[chunk / 2]).x, 0, clip);
}
