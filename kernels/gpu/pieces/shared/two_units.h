// Pieces of types whose block is a unit: a part of the quants of two neighbouring blocks, and their scales.
// The type defines kSideBytes, where the quants of side 1 begin.
#include "kernels/gpu/pieces/shared/half_units.h"

struct Piece {
  uvec4 q[2];
  uint d[2];
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
  [[unroll]] for (uint i = 0; i < 2; ++i) {
    const uint unit = column / 32 + i;
    const bool there = unit * 32 < depth;
    piece.q[i] = there ? load_16(part(row, depth, unit, 0) + side * kSideBytes) : uvec4(0);
    piece.d[i] = there ? load_u16(part(row, depth, unit, 1)) : 0;
  }
}
