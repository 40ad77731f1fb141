// Every type that has no pieces of its own: the unit is decoded as it is loaded.
#include "kernels/vulkan/gemm/pieces/shared/whole_unit.h"

struct Piece {
  uvec4 chunk[4];
};

void load_piece(inout Piece piece, uint64_t row, uint depth, uint column, uint side) {
  piece = Piece(uvec4[4](uvec4(0), uvec4(0), uvec4(0), uvec4(0)));
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return;
  float w[kUnit];
  quant_decode(row, depth, unit, w);
  [[unroll]] for (int i = 0; i < 16; ++i)
    piece.chunk[i / 4][i % 4] =
        half_pair(clamp(vec2(w[i * 2], w[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf)));
}

bool may_overflow(Piece piece) { return false; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) { return piece.chunk[chunk]; }
