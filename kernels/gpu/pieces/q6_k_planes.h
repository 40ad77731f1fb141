// Q6_K in planes (quant/q6_k_planes.h).
#include "kernels/gpu/pieces/shared/by_steps.h"

struct Piece {
  uvec4 low[kUnits], all_scales;
  uvec2 high[kUnits];
  uint scales, d;  // of both units
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
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
