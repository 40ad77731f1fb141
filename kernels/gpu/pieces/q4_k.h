// Q4_K in GGUF order (quant/q4_k.h): the head of a block is loaded once.
#include "kernels/gpu/pieces/shared/half_units.h"

struct Piece {
  uvec4 head, q;
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
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
