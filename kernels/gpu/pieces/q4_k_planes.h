// Q4_K in planes (quant/q4_k_planes.h).
#include "kernels/gpu/pieces/shared/by_steps.h"

struct Piece {
  uvec4 head, q[kUnits];
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
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
