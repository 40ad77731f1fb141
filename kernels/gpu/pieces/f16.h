// F16: the halves as they are in memory.
#include "kernels/gpu/pieces/shared/half_units.h"

struct Piece {
  uvec4 chunk[4];
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint at = column + chunk_unit(side, i) * 32 + chunk_word(side, i) * 8;
    piece.chunk[i] = at < depth ? load_16_of_16(row + at * 2) : uvec4(0);
  }
}

bool may_overflow(Piece piece) { return false; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) { return piece.chunk[chunk]; }
