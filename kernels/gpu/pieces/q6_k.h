// Q6_K in GGUF order (quant/q6_k.h).
#include "kernels/gpu/pieces/shared/half_units.h"

struct Piece {
  uvec4 low[2], high;
  uint scales, d;
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
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
